"""The ledger: data sets with budgets, and every release charged before its noise is drawn.

* `ledger`: `Ledger`; `dataset`: `Dataset`, charging and confirming;
* `budget`: what charges add up to, and whether one more fits; `another`: how large it may be;
* `charges`: a charge as a row and as a guarantee again;
* `entries`: the rows and the chain of hashes that ties them together;
* `schema`, `database`: tables, versions and guards; SQLite and PostgreSQL, one writer at a time.
"""

from dpmarkov.ledger.charges import Charge
from dpmarkov.ledger.dataset import Dataset
from dpmarkov.ledger.ledger import Ledger

__all__ = ["Charge", "Dataset", "Ledger"]
