# How an image is pinned. By default nothing is: tags without digests get the distribution's security fixes with each
# build, and without a Package.resolved, which is not in the repository, the packages have the newest versions that
# Package.swift permits. Two builds of one commit may therefore differ. To build what an earlier image has, take its
# Package.resolved, and name both base images by digest (`docker buildx imagetools inspect swift:6.3-bookworm`):
#
#   docker run --rm --entrypoint cat muster /usr/share/doc/muster/Package.resolved > Package.resolved
#   docker build -t muster --build-arg SWIFT=swift@sha256:... --build-arg DEBIAN=debian@sha256:... .
#
# With a Package.resolved, the build uses exactly its versions, or fails. Debian's packages stay the newest of the
# release. In production, deploy an image by its own digest, so that all hosts run the same one.
ARG SWIFT=swift:6.3-bookworm
ARG DEBIAN=debian:bookworm-slim

FROM ${SWIFT} AS build
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    libidn2-dev libpq-dev pkg-config zlib1g-dev \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# The packages have a layer of their own, because they change less often than the sources.
COPY Package.* ./
RUN if [ -f Package.resolved ]; then swift package --traits Server resolve --force-resolved-versions; else swift package --traits Server resolve; fi
COPY . .
RUN swift build --traits Server -c release --product muster --static-swift-stdlib \
  && install -D "$(swift build --traits Server -c release --show-bin-path)/muster" /out/muster \
  && strip /out/muster

FROM ${DEBIAN}
# tzdata has the rules of time zones: build the image again when they change.
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    ca-certificates libidn2-0 libjemalloc2 libpq5 libstdc++6 libvips-tools tzdata zlib1g \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin muster
COPY --from=build /out/muster /usr/local/bin/muster
# Records the versions of the packages.
COPY --from=build /build/Package.resolved /build/LICENSE /usr/share/doc/muster/
# jemalloc is faster than glibc when one thread allocates and another one frees: see Benchmarks/README.md.
ENV LD_PRELOAD=libjemalloc.so.2
USER 10001:10001
EXPOSE 8080
# The image has no HTTP client, so bash sends the request.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 CMD ["bash", "-c", \
  "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /health/live HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r -t 2 status <&3 && cat <&3 >/dev/null && [[ $status == *' 200 '* ]]"]
ENTRYPOINT ["muster"]
CMD ["serve", "--host", "0.0.0.0"]
