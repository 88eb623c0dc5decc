# The program itself: the running executable and the libraries it maps, laid
# out under root/, and nothing else.
FROM scratch
COPY root/ /
ENTRYPOINT ["/fencepost"]
