# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# One image for all components. Both platforms are cross-compiled, so that no emulation is needed:
#   docker buildx build --platform linux/amd64,linux/arm64 .
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
ARG TARGETOS TARGETARCH
ARG VERSION=v0.0.0-unknown COMMIT=unknown BUILD_DATE=1970-01-01T00:00:00Z
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
RUN V=k8s.io/component-base/version && mkdir /out && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath \
      -ldflags "-s -w -X $V.gitVersion=$VERSION -X $V.gitCommit=$COMMIT -X $V.gitTreeState=clean -X $V.buildDate=$BUILD_DATE \
        -X k8s.io/client-go/pkg/version.gitVersion=$VERSION -X k8s.io/client-go/pkg/version.gitCommit=$COMMIT" \
      -o /out/ ./cmd/...

FROM scratch
LABEL org.opencontainers.image.source="https://github.com/oracle/oci-cloud-controller-manager" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/ /usr/local/bin/
ENV PATH=/usr/local/bin
# No USER: an old manifest that says nothing about it must find its files readable as before. Ours says runAsUser 65532.
ENTRYPOINT ["/usr/local/bin/oci-cloud-controller-manager"]
