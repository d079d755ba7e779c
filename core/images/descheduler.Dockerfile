# From the repository's root:
#   docker build --file core/images/descheduler.Dockerfile --tag berth/descheduler:0.2.0 .
FROM python:3.13.9-slim-bookworm@sha256:b685a4fa58bb19d1814d78a1ec0f0208f351452724f78b20212c984d6e124a34 AS build
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /source
COPY . .
RUN core/images/install.sh /opt/berth berth-simulation berth-sandbox berth-scheduler berth-gpu-share berth-plugin-sdk berth-plugin-proto

FROM python:3.13.9-slim-bookworm@sha256:b685a4fa58bb19d1814d78a1ec0f0208f351452724f78b20212c984d6e124a34
COPY --from=build /opt/berth /opt/berth
ENV PATH=/opt/berth/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["berth"]
CMD ["deschedule", "--help"]
