#!/usr/bin/perl
# Opens TCP port 443 with the congestion control that is asked for ("" for the kernel's), which all connections of the
# sockets take over, and becomes nginx, which takes over the sockets: its configuration knows no such setting.
use strict;
use warnings;
use Socket qw(:DEFAULT inet_pton IPPROTO_IPV6 IPPROTO_TCP IPV6_V6ONLY pack_sockaddr_in pack_sockaddr_in6);

my $TCP_CONGESTION = 13;    # Linux; the module has no name for it.
my ($congestion_control, @command) = @ARGV;
$^F = 255;                  # The sockets stay open in nginx.

my @addresses = (
    [ AF_INET, pack_sockaddr_in(443, INADDR_ANY) ],
    [ AF_INET6, pack_sockaddr_in6(443, inet_pton(AF_INET6, "::")) ],
);
my @sockets;
for my $address (@addresses) {
    my ($family, $name) = @$address;
    socket(my $socket, $family, SOCK_STREAM, 0) or die "nginx: no TCP socket: $!\n";
    setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1);
    setsockopt($socket, IPPROTO_IPV6, IPV6_V6ONLY, 1) if $family == AF_INET6;
    $congestion_control eq "" || setsockopt($socket, IPPROTO_TCP, $TCP_CONGESTION, $congestion_control)
        or die "nginx: the kernel refuses TCP congestion control \"$congestion_control\": $!\n"
        . "It is to be built in or loaded (modprobe tcp_$congestion_control), and the container needs NET_ADMIN.\n";
    bind($socket, $name) && listen($socket, 511) or die "nginx: TCP port 443 cannot be opened: $!\n";
    push @sockets, $socket;
}
$ENV{NGINX} = join "", map { fileno($_) . ";" } @sockets;
exec @command or die "nginx: $command[0] cannot be started: $!\n";
