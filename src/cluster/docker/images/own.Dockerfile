# The program itself: the running executable and the libraries it maps, laid
# out under root/, and nothing else but a folder for the resource's data.
FROM scratch
COPY root/ /
COPY --chown=65532:65532 data/ /data/
# Nobody else is this user.
USER 65532:65532
ENTRYPOINT ["/fencepost"]
