# The images of operator and relay by Docker, for those who build that way; the
# release is made by `make images`, without it. Both put the same files under the
# same configuration, which a test of hack/images holds. See docs/guides/images.md:
#
#   docker build --target relay -t relay:dev .

# The version is that of go.mod, the digest that of the tag's index, for every
# platform.
FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:6c2a5538f964f1c82f97ad14988bf05de100d922d159d0e398b54c7b0ca0c6c9 AS build
ARG TARGETOS
ARG TARGETARCH
# Seconds since 1970; only a source without git needs it.
ARG SOURCE_DATE_EPOCH
WORKDIR /src
COPY . .
# The repository belongs to whoever runs the engine, which git asks about.
RUN git config --global --add safe.directory /src
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    cd hack/images && go build -buildvcs=false -o /usr/local/bin/images .

FROM build AS operator-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    images rootfs -root /src -image operator -platform ${TARGETOS}/${TARGETARCH} -out /rootfs

FROM build AS relay-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    images rootfs -root /src -image relay -platform ${TARGETOS}/${TARGETARCH} -out /rootfs

FROM scratch AS operator
COPY --from=operator-files /rootfs/ /
USER 65532:65532
ENTRYPOINT ["/operator"]
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="Relaypool operator" \
      org.opencontainers.image.description="Keeps fleets of relays for shielded pools on Solana as RelayPools declare them" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="https://github.com/relaypool/relaypool" \
      org.opencontainers.image.documentation="https://github.com/relaypool/relaypool/blob/main/docs/guides/images.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="relaypool"

FROM scratch AS relay
COPY --from=relay-files /rootfs/ /
USER 65532:65532
ENTRYPOINT ["/relay"]
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="Relaypool relay" \
      org.opencontainers.image.description="Takes proofs of a shielded pool on Solana, pays the network's fee and puts the transactions on the chain" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="https://github.com/relaypool/relaypool" \
      org.opencontainers.image.documentation="https://github.com/relaypool/relaypool/blob/main/docs/guides/images.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="relaypool"
