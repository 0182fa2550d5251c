"""Runs peers in turn and prints tables: python run_all.py --data DIR --out results.jsonl [--repeat 3] [--only duckdb_full,dbsp]
[--workloads W1,W2] [--timeout 300] [--report]. Environment: PEER_PYTHON_<NAME> picks a peer's Python (default: this one);
also FLINK_PYTHON and CARGO_TARGET_DIR (see the peers). Each result is the median run by changes/s, p50 or batch time."""
import argparse, json, os, signal, statistics as st, subprocess, sys, tempfile, time

here = os.path.dirname(os.path.abspath(__file__))
ALL = "W1 W2 W3 W4 W5 W6".split()
PEERS = [("duckdb_full", "each", ALL), ("duckdb_full", "end", ["W1", "W2", "W3"]), ("spark_full", "each", ALL), ("pathway", "upsert", ALL),
         ("pathway", "signed", ["W1", "W2"]), ("dbsp", "zset", ALL), ("flink", "hashmap", ["W1", "W2", "W3", "W4", "W6"]),
         ("flink", "rocksdb", ["W1", "W2", "W3", "W4"]), ("postgres", "triggers", ALL), ("postgres", "pg_ivm", ALL),
         ("viewkeeper", "local", ALL), ("viewkeeper", "local-commit", ALL), ("viewkeeper", "spark", ["W1", "W2", "W3", "W4"])]
p = argparse.ArgumentParser()
p.add_argument("--data", required=True); p.add_argument("--out", required=True); p.add_argument("--repeat", type=int, default=1)
p.add_argument("--only", default=""); p.add_argument("--workloads", default=",".join(ALL)); p.add_argument("--timeout", type=int, default=300)
p.add_argument("--report", action="store_true")
a = p.parse_args()


def one(peer, variant, wl):
    with tempfile.NamedTemporaryFile("r") as f:
        py = os.environ.get(f"PEER_PYTHON_{peer.upper()}", sys.executable)
        q = subprocess.Popen([py, f"{here}/peer_{peer}.py", "--workload", wl, "--variant", variant, "--data", a.data, "--out", f.name],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try: err = q.communicate(timeout=a.timeout)[1]
        except subprocess.TimeoutExpired:
            q.send_signal(signal.SIGTERM); q.communicate(); err = f"over {a.timeout} s"
        line = f.read().strip()
        r = json.loads(line) if line else {"peer": peer, "workload": wl, "result": "failed: " + err.strip()[-200:]}
    r.update(variant=variant, load1=os.getloadavg()[0]); print(json.dumps(r), flush=True)
    with open(a.out, "a") as f: f.write(json.dumps(r) + "\n")


if not a.report:
    for k in range(a.repeat):                       # peers in turn, so that a busy minute does not hit one peer only
        for wl in a.workloads.split(","):
            for peer, variant, wls in PEERS:
                if wl in wls and (not a.only or peer in a.only.split(",") or f"{peer}.{variant}" in a.only.split(",")): one(peer, variant, wl)
runs = {}
for l in open(a.out):
    r = json.loads(l); runs.setdefault((r["workload"], r["peer"], r["variant"]), []).append(r)


def med(rs, f):
    xs = [f(r) for r in rs if "result" not in r]
    return st.median(xs) if xs else None


base = {w: med(runs.get((w, "spark_full", "each"), []), lambda r: r["changes_per_s"]) for w in ("W1", "W2", "W3")}
print("\n| workload | peer | changes/s (median, range) | x spark_full | peak RSS MiB | runs |\n|---|---|---|---|---|---|")
for (w, peer, v), rs in sorted(runs.items()):
    if w not in base: continue
    m = med(rs, lambda r: r["changes_per_s"])
    if not m: print(f"| {w} | {peer} {v} | {rs[-1]['result']} | | | {len(rs)} |"); continue
    xs = [r["changes_per_s"] for r in rs if "result" not in r]
    print(f"| {w} | {peer} {v} | {m:,.0f} ({min(xs):,}-{max(xs):,}) | {m / base[w]:.1f} | {med(rs, lambda r: r['rss_mb']):,.0f} | {len(xs)} |" if base[w] else f"| {w} | {peer} {v} | {m:,.0f} | | | |")
for w in ("W4", "W5"):
    print(f"\n| {w} | p50 ms | p99 ms | n | runs |\n|---|---|---|---|---|")
    for (x, peer, v), rs in sorted(runs.items()):
        if x == w:
            if med(rs, lambda r: r["p50_ms"]) is None: print(f"| {peer} {v} | {rs[-1]['result']} | | | |"); continue
            print(f"| {peer} {v} | {med(rs, lambda r: r['p50_ms']):.4g} | {med(rs, lambda r: r['p99_ms']):.4g} | {rs[0].get('n', '')} | {len(rs)} |")
print("\n| W6, ms per 1,000 changes | 10^4 | 10^5 | 10^6 | 10^7 | runs |\n|---|---|---|---|---|---|")
for (x, peer, v), rs in sorted(runs.items()):
    if x == "W6":
        c = [med([r for r in rs if str(10**k) in r.get("batch_ms", {})], lambda r, k=k: r["batch_ms"][str(10**k)]) for k in (4, 5, 6, 7)]
        print(f"| {peer} {v} | " + " | ".join("n/a" if m is None else f"{m:.4g}" for m in c) + f" | {len(rs)} |")
