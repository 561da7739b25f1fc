// Go's own QUIC (golang.org/x/net/quic) as an endpoint: HTTP/0.9, client or server, chosen by ROLE and TESTCASE.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/quic"
	"golang.org/x/net/quic/qlog"
)

// The stack's windows and its send buffer are fixed, by default at 1 MiB, which a satellite link would outgrow.
const window = 16 << 20

// must is for what cannot go on after an error.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatalf("go-x-net: %v", err)
	}
	return value
}

func configure() *quic.Config {
	qlogs := qlog.HandlerOptions{Level: quic.QLogLevelFrame, Dir: os.Getenv("QLOGDIR")}
	config := &quic.Config{
		TLSConfig:                &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"hq-interop"}},
		MaxStreamReadBufferSize:  window,
		MaxStreamWriteBufferSize: window,
		MaxConnReadBufferSize:    window,
		HandshakeTimeout:         time.Minute,
		MaxIdleTimeout:           time.Minute,
		QLogLogger:               slog.New(qlog.NewJSONHandler(qlogs)),
	}
	if name := os.Getenv("SSLKEYLOGFILE"); name != "" {
		config.TLSConfig.KeyLogWriter = must(os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644))
	}
	return config
}

// listen opens a socket whose buffers hold the bursts of a long link.
func listen(address string, config *quic.Config) *quic.Endpoint {
	socket := must(net.ListenPacket("udp", address)).(*net.UDPConn)
	socket.SetReadBuffer(4 << 20)
	socket.SetWriteBuffer(4 << 20)
	return must(quic.NewEndpoint(socket, config))
}

// leave closes what is open; the peer's answer to the close is not worth waiting for.
func leave(endpoint *quic.Endpoint) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	go endpoint.Close(ctx)
	<-ctx.Done()
}

func runServer(ctx context.Context, config *quic.Config) {
	config.TLSConfig.Certificates = []tls.Certificate{must(tls.LoadX509KeyPair("/certs/cert.pem", "/certs/priv.key"))}
	config.RequireAddressValidation = os.Getenv("TESTCASE") == "retry"
	endpoint := listen(":443", config)
	defer leave(endpoint)
	for conn, err := endpoint.Accept(ctx); err == nil; conn, err = endpoint.Accept(ctx) {
		go func() {
			for stream, err := conn.AcceptStream(ctx); err == nil; stream, err = conn.AcceptStream(ctx) {
				go answer(stream)
			}
		}()
	}
}

func answer(stream *quic.Stream) {
	request, err := bufio.NewReader(stream).ReadString('\n')
	name, isGet := strings.CutPrefix(strings.TrimSpace(request), "GET /")
	var file *os.File
	if err == nil && isGet && filepath.IsLocal(name) {
		file, err = os.Open(filepath.Join("/www", name))
	}
	if file == nil {
		log.Printf("request %q cannot be answered: %v", request, err)
		stream.Reset(1)
		return
	}
	defer file.Close()
	if _, err = io.Copy(stream, file); err == nil {
		stream.Close()
	}
}

// fetchAll requests all files at once over one connection.
func fetchAll(ctx context.Context, config *quic.Config, urls []string) (err error) {
	endpoint := listen(":0", nil)
	defer leave(endpoint)
	conn := must(endpoint.Dial(ctx, "udp", must(url.Parse(urls[0])).Host, config))
	ends := make(chan error, len(urls))
	for _, address := range urls {
		go func() { ends <- fetch(ctx, conn, must(url.Parse(address)).Path) }()
	}
	for range urls {
		err = errors.Join(err, <-ends)
	}
	return err
}

func fetch(ctx context.Context, conn *quic.Conn, name string) error {
	file := must(os.Create(filepath.Join("/downloads", path.Base(name))))
	stream, err := conn.NewStream(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stream, "GET %s\r\n", name)
	stream.CloseWrite()
	_, err = io.Copy(file, stream)
	return errors.Join(err, file.Close())
}

func runClient(ctx context.Context, config *quic.Config, urls []string) (err error) {
	config.TLSConfig.RootCAs = x509.NewCertPool()
	config.TLSConfig.RootCAs.AppendCertsFromPEM(must(os.ReadFile("/certs/ca.pem")))
	if os.Getenv("TESTCASE") != "multiconnect" {
		return fetchAll(ctx, config, urls)
	}
	for number := range urls {
		err = errors.Join(err, fetchAll(ctx, config, urls[number:number+1]))
	}
	return err
}

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	if os.Getenv("ROLE") == "server" {
		runServer(ctx, configure())
	} else if err := runClient(ctx, configure(), os.Args[1:]); err != nil {
		log.Fatalf("go-x-net: %v", err)
	}
}
