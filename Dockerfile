# The program as an image, for machines that have Docker and nothing else: `just image` builds it,
# docs/ci.md says how to run it. BASE needs a glibc at least as new as that of this machine.
ARG BASE=debian:stable-slim
FROM ${BASE}
COPY target/release/fencepost /usr/local/bin/fencepost
WORKDIR /work
ENTRYPOINT ["/usr/local/bin/fencepost"]
