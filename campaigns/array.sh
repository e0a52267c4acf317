#!/bin/sh
# One task of a batch array: part I of N of a selection, below a folder that all tasks share.
#
#   sbatch --array=1-32 campaigns/array.sh /shared/campaign mutants
#   I=3 N=8 campaigns/array.sh /shared/campaign crashpoints crashpoints/like-consumer.yaml
#   ./run.sh report --merge /shared/campaign/part-*/mutants
set -eu

I=${I:-${SLURM_ARRAY_TASK_ID:?the number of this task, from 1: set I}}
N=${N:-${SLURM_ARRAY_TASK_COUNT:?how many tasks there are: set N}}
folder=${1:?usage: array.sh FOLDER COMMAND OR SUITE...}
shift

# A batch system runs a copy of this file: the checkout is where the job was submitted.
cd "${SLURM_SUBMIT_DIR:-$(dirname "$0")/..}"
exec ./run.sh "$@" --shard "$I/$N" --evidence "$folder/part-$I"
