"""Work in the background: what a job is, the process that carries it out, and the queue that starts it.

    spec.py       a job and its steps, each a command of the engine
    status.py     how far it is, replaced as a whole
    runner.py     python -m app.jobs.runner FOLDER: one step after the other; goes on where it was interrupted
    launch.py     how a runner is started, on this machine or on a Ray cluster, and whether it lives
    queue.py      a thread of the server: at most so many runners, none lost
    kinds.py      the jobs that there are
    estimate.py   how long a training would take
    turns.py      owners take turns: whoever asks for much waits for themselves

A job's folder is the truth about it; app/store lists whose it is. Nothing here needs Streamlit.
"""
