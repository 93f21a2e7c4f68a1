# SPDX-License-Identifier: MIT
#
#     docker build -t schedlab .
#     docker run --network host schedlab                                   the demo, at the address that it prints
#     docker run -v "$PWD/runs:/schedlab/runs" schedlab ./schedlab run     the studies, and their report
FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git python3 python3-venv && \
    rm -rf /var/lib/apt/lists/*
COPY . /schedlab
WORKDIR /schedlab
# What the first start fetches and builds becomes a part of the image.
RUN apt-get update && ./schedlab run --workload mixed --policy rr --cpus 1 --out /tmp/run && rm -rf /tmp/run /var/lib/apt/lists/*
CMD ["./schedlab", "demo", "--port", "8321", "--no-browser"]
