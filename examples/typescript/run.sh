set -e
npm install --no-audit --no-fund --loglevel error
npm run --silent generate
npm run --silent start
