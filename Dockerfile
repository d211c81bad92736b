# The base images have no digests: with a tag, each build gets the distribution's security fixes. To make a build
# repeatable, pin both images by digest, as CONTRIBUTING.md describes.
FROM swift:6.3-bookworm AS build
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    libidn2-dev libpq-dev pkg-config zlib1g-dev \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# The packages have a layer of their own, because they change less often than the sources.
COPY Package.* ./
RUN swift package resolve
COPY . .
RUN swift build -c release --product muster --static-swift-stdlib \
  && install -D "$(swift build -c release --show-bin-path)/muster" /out/muster \
  && strip /out/muster

FROM debian:bookworm-slim
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
