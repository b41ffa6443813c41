rm -rf build/types; mkdir -p build/types; cp -r interface build/types/schedgap; cp -r formulations solvers heuristics catalogue benchmarks build/types/schedgap/
MYPYPATH=build/types .venv/bin/mypy -p schedgap | tail -${1:-15}
