# quic-go whose client announces windows of 16 MiB for a stream and 24 MiB for the connection (docs/paper: "Receive
# windows of clients"). Everything else is as in endpoints/quic-go.
ARG BUILD=quic-go-build:latest
ARG IMAGE=quicsat/quic-go:latest

FROM ${BUILD} AS build
RUN sed -i 's/&quic.Config{Tracer/\&quic.Config{InitialStreamReceiveWindow: 16 << 20, MaxStreamReceiveWindow: 16 << 20, InitialConnectionReceiveWindow: 24 << 20, MaxConnectionReceiveWindow: 24 << 20, Tracer/' \
      interop/client/main.go \
 && [ "$(grep -c 'InitialStreamReceiveWindow: 16 << 20' interop/client/main.go)" = 1 ] \
 && go build -trimpath -ldflags="-s -w" -o /out/ ./interop/client

FROM ${IMAGE}
COPY --from=build /out/client /endpoint/client
