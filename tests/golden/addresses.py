"""Addresses of all pages, on the zoo of golden.tar.xz; addresses.json keeps what they mean."""

from __future__ import annotations

HISTORY = "h=i1~a%257Eb~i9~%25D0%25BA%25D0%25BB%25D1%258E%25D1%2587&k=7"
"""i1, a~b, i9, ключ."""
ADDRESSES: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("", "v=1&ds=golden"),
    ("", f"v=1&ds=golden&{HISTORY}"),
    ("", f"v=1&ds=golden&{HISTORY}&m=sasrec~markov&item=i21"),
    ("", "v=1&ds=golden&h=i1~i2~i6&b=i1~i6&k=100"),
    ("", "v=1&ds=golden&h=i1~i2&b="),
    ("", "v=1&ds=golden&u=u3&k=1"),
    ("", f"v=1&ds=golden&{HISTORY}&beam=tiger&width=20&write=anything&slow=asked"),
    ("", f"v=1&ds=golden&{HISTORY}&beam=sasrec&width=0&write=poems"),
    ("", "v=2&ds=golden&h=i1&k=0"),
    ("", "v=1&ds=elsewhere&h=i1"),
    ("", "v=1&ds=golden&h=i1~nowhere~i2&m=gru4rec&u=u3"),
    ("", "v=1&ds=golden&u=nobody"),
    ("catalogue", f"v=1&ds=golden&{HISTORY}"),
    ("catalogue", "v=1&ds=golden&u=u0"),
    ("attention", f"v=1&ds=golden&{HISTORY}&model=bert4rec&view=head&layer=1&head=2&scale=rows&latest=50&item=i2"),
    ("attention", f"v=1&ds=golden&{HISTORY}&model=sasrec&view=rollout&scale=unit&people=position"),
    ("attention", f"v=1&ds=golden&{HISTORY}&model=lc-rec&unit=codes&decoder=1&people=distance"),
    ("attention", f"v=1&ds=golden&{HISTORY}&model=recformer&word_layer=1&word_head=mean&view=mean"),
    ("attention", f"v=1&ds=golden&{HISTORY}&model=sasrec&layer=9&head=0&view=side"),
    ("semantic_ids", "v=1&ds=golden&h=i1&left=rqvae&right=letter&level=2&colour=year&model=tiger"),
    ("semantic_ids", "v=1&ds=golden&h=i1&left=p5-cid&right=none&item=i7&of=p5-cid&prefix=1"),
    ("semantic_ids", "v=1&ds=golden&h=i1&left=rqvae&of=rqvae&prefix=3-1-9-9-9"),
    ("semantic_ids", "v=1&ds=golden&h=i1&left=vq&right=random&level=99&colour=weight"),
    ("graph", f"v=1&ds=golden&{HISTORY}&model=lightgcn&item=i2&layers=2"),
    ("graph", f"v=1&ds=golden&{HISTORY}&model=ngcf&layers=4"),
    ("map", "v=1&ds=golden&h=i1&space=sasrec&beside=space.words&colour=year&find=red&top=history~next&item=i6"),
    ("map", "v=1&ds=golden&h=i1&space=codes.rqvae&beside=none&by=level&code=rqvae.1-3"),
    ("map", "v=1&ds=golden&h=i1&space=latents.letter&colour=code.rqvae&area=latents.letter~-1_-2_3_4&top=none"),
    ("map", "v=1&ds=golden&h=i1&area=prefix.rqvae~x-3"),
    ("map", "v=1&ds=golden&h=i1&area=item.ids~i1~a%257Eb"),
    ("map", "v=1&ds=golden&h=i1&space=popularity&top=roads&colour=weight&area=sasrec~1"),
    ("metrics", "v=1&ds=golden&h=i1&protocol=full&metric=MRR&at=20&baseline=markov&by=popularity-10"),
    ("metrics", "v=1&ds=golden&h=i1&protocol=u100&metric=HR&at=5&first=sasrec&second=attrec&along=seconds"),
    ("metrics", "v=1&ds=golden&h=i1&protocol=full%2Buser&metric=NDCG&at=1&by=length&person=u2"),
    ("metrics", "v=1&ds=golden&h=i1&metric=Recall&at=7&by=height&first=sasrec&second=sasrec&along=steps"),
    ("report", f"v=1&ds=golden&{HISTORY}&title=Of+today&parts=history~lists~metrics&item=i2&slow=asked&rows=yes"),
    (
        "report",
        f"v=1&ds=golden&{HISTORY}&attention=sasrec~bert4rec&view=rollout&map=attrec&codes=rqvae&figures=interactive",
    ),
    ("report", "v=1&ds=golden&h=i1&protocol=u100&saved_report=abcdefgh01234567"),
    ("report", "v=1&ds=golden&h=i1&parts=weather&attention=nobody&codes=vq&protocol=p100&rows=no&saved_report=../x"),
    ("your_data", f"v=1&ds=golden&{HISTORY}"),
    ("about", "v=1&ds=golden&h=i1&m=sasrec&k=12&item=i1"),
)
"""(page, parameters): what each lets be chosen, and some that cannot be had."""
