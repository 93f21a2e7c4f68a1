#!/bin/bash
# SPDX-License-Identifier: MIT
# A sweep on the nodes of a SLURM cluster (docs/sweeps.md). From a checkout that all nodes see by the same path:
#
#   ./schedlab dask certificate "$HOME/schedlab-certificate"      # once
#   sbatch sweeps/on-slurm.sh sweeps/mlfq-mixed.yaml
#
#SBATCH --job-name=schedlab-sweep
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --time=04:00:00
#SBATCH --output=schedlab-sweep-%j.log
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"

certificate=${SCHEDLAB_CERTIFICATE:-$HOME/schedlab-certificate}
host=$(hostname -f)
address=tls://$host:8786

# If the sweep ends for any reason, the scheduler and the workers end, too.
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

./schedlab dask scheduler --certificate "$certificate" --host "$host" --port 8786 &
srun ./schedlab dask worker --certificate "$certificate" "$address" \
    --nworkers "$SLURM_CPUS_PER_TASK" --nthreads 1 &

./schedlab sweep "$@" --scheduler "$address" --certificate "$certificate" --out "runs/slurm-$SLURM_JOB_ID"
