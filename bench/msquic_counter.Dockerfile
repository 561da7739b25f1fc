# msquic in which the counter of acknowledged bytes does not underflow (docs/measurements/causes.md): its CUBIC subtracts
# the window from the counter before it enlarges the window. Everything else is as in endpoints/msquic.
ARG BUILD=msquic-build:latest
ARG IMAGE=quicsat/msquic:latest

FROM ${BUILD} AS build
RUN sed -i '/Cubic->AimdWindow += DatagramPayloadLength;/{N;s/\(.*\)\n\(.*\)/\2\n\1/}' \
      /root/.cargo/registry/src/*/msquic-*/src/core/cubic.c \
 && grep -A 1 'AimdAccumulator -= Cubic->AimdWindow' /root/.cargo/registry/src/*/msquic-*/src/core/cubic.c \
    | grep -q 'AimdWindow += DatagramPayloadLength'
RUN cd target/release/build/msquic-*/out/build && cmake --build . --target install -j "$(nproc)"
# Cargo does not see that a library of C has changed.
RUN rm -f target/release/.fingerprint/msquic-*/*lib-msquic target/release/deps/libmsquic-* \
 && touch src/main.rs && cargo build --release --locked --offline

FROM ${IMAGE}
COPY --from=build /build/endpoint/target/release/endpoint /endpoint/client
