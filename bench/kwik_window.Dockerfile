# kwik whose congestion window grows with every acknowledgement after recovery, as if it were always in full use
# (docs/measurements/causes.md). Everything else is as in endpoints/kwik.
ARG BUILD=kwik-build:latest
ARG IMAGE=quicsat/kwik:latest

FROM ${BUILD} AS build
ARG VERSION=0.10.9
ARG CLASS=tech/kwik/core/cc/NewRenoCongestionController
RUN mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
      -Dartifact=tech.kwik:kwik:${VERSION}:jar:sources -DoutputDirectory=sources \
 && jar xf sources/kwik-${VERSION}-sources.jar ${CLASS}.java \
 && sed -i 's/boolean cwndLimited = .*;/boolean cwndLimited = true;/' ${CLASS}.java \
 && [ "$(grep -c 'boolean cwndLimited = true;' ${CLASS}.java)" = 1 ] \
 && javac --release 21 -cp 'lib/*' -d changed ${CLASS}.java \
 && jar uf lib/kwik-${VERSION}.jar -C changed .

FROM ${IMAGE}
COPY --from=build /build/lib /endpoint/lib
