set -e
python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
mkdir -p gen
.venv/bin/python -m grpc_tools.protoc --proto_path protos --python_out gen --grpc_python_out gen $(cd protos && find demo payments buf -name '*.proto')
.venv/bin/python main.py
.venv/bin/python test_shop.py
