"""What a plugin's project has beside its template: image files, a SchedulerPlugin, a page to begin with."""

from collections.abc import Mapping

FROM_REGISTRY = "RUN pip install --no-cache-dir berth-plugin-sdk\n"
FROM_COPY = "COPY sdk /sdk\nRUN pip install --no-cache-dir /sdk/proto /sdk/python\n"
"""How Python's image has the SDK; the other languages' manifests say it."""

_HEAD = "# docker build --tag {name}:0.1.0 .\n"

IMAGES: Mapping[str, str] = {
    "python": _HEAD
    + """FROM python:3.13-slim-bookworm
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
{install}COPY {module}.py /plugin/
USER 65532:65532
ENTRYPOINT ["python", "/plugin/{module}.py"]
""",
    "go": _HEAD
    + """FROM golang:1.26 AS build
WORKDIR /source
COPY . .
ENV CGO_ENABLED=0
RUN go build -trimpath -ldflags="-s -w" -o /plugin .

FROM scratch
COPY --from=build /plugin /plugin
USER 65532:65532
ENTRYPOINT ["/plugin"]
""",
    "typescript": _HEAD
    + """FROM node:24-slim
WORKDIR /plugin
COPY . .
RUN npm install --omit=dev
USER 65532:65532
ENTRYPOINT ["node", "{module}.ts"]
""",
    "rust": _HEAD
    + """FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /source
COPY . .
RUN cargo build --release

FROM scratch
COPY --from=build /source/target/release/{name} /plugin
USER 65532:65532
ENTRYPOINT ["/plugin"]
""",
    "java": _HEAD
    + """FROM maven:3.9-eclipse-temurin-17 AS build
WORKDIR /source
COPY . .
RUN mvn --batch-mode --quiet package -Dmaven.test.skip

FROM eclipse-temurin:17-jre
COPY --from=build /source/target/plugin.jar /source/jvm.options /plugin/
COPY --from=build /source/target/lib /plugin/lib
USER 65532:65532
ENTRYPOINT ["java", "@/plugin/jvm.options", "-jar", "/plugin/plugin.jar"]
""",
}
"""Image files by language."""

SCHEDULER_PLUGIN = """apiVersion: berth.dev/v1alpha1
kind: SchedulerPlugin
metadata:
  name: {name}
  namespace: berth-system
spec:
  image: {name}:0.1.0
  profiles:
  - berth
  resources:
    requests:
      cpu: 50m
      memory: 64Mi
    limits:
      memory: 256Mi
"""

README = """# {name}

A plugin of Berth, the Kubernetes scheduler. As it is made it keeps pods on their own team's nodes, and off
nodes without a team where it can; put your own rule in its place.

```sh
{build}
{test}
{run}
```

In another shell:

```sh
berth plugin verify unix:/tmp/{name}/plugin.sock
```

A scheduler on this machine takes it as it is:

```sh
berth plugin attach {name} --address unix:/tmp/{name}/plugin.sock --profile default-scheduler \\
    --server https://127.0.0.1:10259 --insecure-skip-tls-verify
```

On a cluster that asks who you are, add `--token "$(kubectl create token NAME)"`: NAME is a service account
that may `get`, `put` and `delete` the paths `/plugins` and `/plugins/*` (a ClusterRole's `nonResourceURLs`).

Where an operator keeps the scheduler: build the image, push it, name it in plugin.yaml, and
`kubectl apply -f plugin.yaml`; a Scheduler runs the plugin once it lists it
(`berth plugin attach {name} --namespace berth-system`).
"""
