//! Plain data across the border: results become dicts, lists and numbers of Python, settings come from them.

use crate::error::value;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use serde::de::DeserializeOwned;
use serde::ser::{self, Serialize};
use serde_json::Value;

/// A result as Python objects. Numbers that are not finite stay numbers.
pub(crate) fn to_python<'py>(py: Python<'py>, x: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    x.serialize(Objects { py }).map_err(|e| e.0)
}

/// Settings from a dict; `what` names them in errors.
pub(crate) fn from_python<T: DeserializeOwned>(what: &str, x: &Bound<'_, PyAny>) -> PyResult<T> {
    serde_json::from_value(to_value(what, x)?).map_err(|e| value(what, e))
}

fn to_value(what: &str, x: &Bound<'_, PyAny>) -> PyResult<Value> {
    if x.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(x) = x.cast::<PyBool>() {
        return Ok(Value::Bool(x.is_true()));
    }
    if x.is_instance_of::<PyInt>() {
        return match (x.extract::<i64>(), x.extract::<u64>()) {
            (Ok(i), _) => Ok(i.into()),
            (_, Ok(u)) => Ok(u.into()),
            _ => Err(value(what, format!("{x} is too large"))),
        };
    }
    if x.is_instance_of::<PyFloat>() {
        let number = serde_json::Number::from_f64(x.extract()?);
        return number
            .map(Value::Number)
            .ok_or_else(|| value(what, format!("{x} is not a finite number")));
    }
    if let Ok(x) = x.cast::<PyString>() {
        return Ok(Value::String(x.to_string()));
    }
    if let Ok(dict) = x.cast::<PyDict>() {
        let entry =
            |(k, v): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((k.extract()?, to_value(what, &v)?));
        return dict.iter().map(entry).collect::<PyResult<serde_json::Map<_, _>>>().map(Value::Object);
    }
    match x.try_iter() {
        Ok(items) => {
            items.map(|item| to_value(what, &item?)).collect::<PyResult<Vec<_>>>().map(Value::Array)
        }
        Err(_) => Err(value(what, format!("{} cannot be a setting", x.get_type().name()?))),
    }
}

#[derive(Clone, Copy)]
struct Objects<'py> {
    py: Python<'py>,
}

/// An exception on its way through serde.
#[derive(Debug)]
struct Raised(PyErr);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
impl std::error::Error for Raised {}
impl From<PyErr> for Raised {
    fn from(e: PyErr) -> Self {
        Self(e)
    }
}
impl ser::Error for Raised {
    fn custom<M: std::fmt::Display>(message: M) -> Self {
        Self(value("result", message))
    }
}

type Object<'py> = Bound<'py, PyAny>;
type Done<'py> = Result<Object<'py>, Raised>;

macro_rules! numbers {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, x: $type) -> Done<'py> {
            Ok(x.into_pyobject(self.py).map_err(PyErr::from)?.to_owned().into_any())
        })*
    };
}

impl<'py> ser::Serializer for Objects<'py> {
    type Ok = Object<'py>;
    type Error = Raised;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeTupleStruct = Items<'py>;
    type SerializeTupleVariant = Items<'py>;
    type SerializeMap = Entries<'py>;
    type SerializeStruct = Entries<'py>;
    type SerializeStructVariant = Entries<'py>;

    numbers!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f64: f64,
        serialize_str: &str);

    fn serialize_f32(self, x: f32) -> Done<'py> {
        self.serialize_f64(x.into())
    }
    fn serialize_char(self, x: char) -> Done<'py> {
        self.serialize_str(x.encode_utf8(&mut [0; 4]))
    }
    fn serialize_bytes(self, x: &[u8]) -> Done<'py> {
        Ok(pyo3::types::PyBytes::new(self.py, x).into_any())
    }
    fn serialize_none(self) -> Done<'py> {
        Ok(self.py.None().into_bound(self.py))
    }
    fn serialize_some<T: Serialize + ?Sized>(self, x: &T) -> Done<'py> {
        x.serialize(self)
    }
    fn serialize_unit(self) -> Done<'py> {
        self.serialize_none()
    }
    fn serialize_unit_struct(self, _: &'static str) -> Done<'py> {
        self.serialize_none()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done<'py> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, x: &T) -> Done<'py> {
        x.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        x: &T,
    ) -> Done<'py> {
        let x = x.serialize(self)?;
        self.tagged(Some(variant), x)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'py>, Raised> {
        Ok(Items { to: self, list: PyList::empty(self.py), variant: None })
    }
    fn serialize_tuple(self, n: usize) -> Result<Items<'py>, Raised> {
        self.serialize_seq(Some(n))
    }
    fn serialize_tuple_struct(self, _: &'static str, n: usize) -> Result<Items<'py>, Raised> {
        self.serialize_seq(Some(n))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'py>, Raised> {
        Ok(Items { to: self, list: PyList::empty(self.py), variant: Some(variant) })
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'py>, Raised> {
        Ok(Entries { to: self, dict: PyDict::new(self.py), key: None, variant: None })
    }
    fn serialize_struct(self, _: &'static str, n: usize) -> Result<Entries<'py>, Raised> {
        self.serialize_map(Some(n))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Entries<'py>, Raised> {
        Ok(Entries { to: self, dict: PyDict::new(self.py), key: None, variant: Some(variant) })
    }
}

impl<'py> Objects<'py> {
    /// `x`, or a dict of the variant's name and `x`, as in JSON.
    fn tagged(self, variant: Option<&'static str>, x: Object<'py>) -> Done<'py> {
        let Some(variant) = variant else { return Ok(x) };
        let dict = PyDict::new(self.py);
        dict.set_item(variant, x)?;
        Ok(dict.into_any())
    }
}

struct Items<'py> {
    to: Objects<'py>,
    list: Bound<'py, PyList>,
    variant: Option<&'static str>,
}

macro_rules! items {
    ($($name:ident::$method:ident),*) => {
        $(impl<'py> ser::$name for Items<'py> {
            type Ok = Object<'py>;
            type Error = Raised;
            fn $method<T: Serialize + ?Sized>(&mut self, x: &T) -> Result<(), Raised> {
                Ok(self.list.append(x.serialize(self.to)?)?)
            }
            fn end(self) -> Done<'py> {
                self.to.tagged(self.variant, self.list.into_any())
            }
        })*
    };
}
items!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

struct Entries<'py> {
    to: Objects<'py>,
    dict: Bound<'py, PyDict>,
    key: Option<Object<'py>>,
    variant: Option<&'static str>,
}

impl<'py> ser::SerializeMap for Entries<'py> {
    type Ok = Object<'py>;
    type Error = Raised;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Raised> {
        self.key = Some(key.serialize(self.to)?);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, x: &T) -> Result<(), Raised> {
        let key = self.key.take().expect("a key comes before its value");
        Ok(self.dict.set_item(key, x.serialize(self.to)?)?)
    }
    fn end(self) -> Done<'py> {
        Ok(self.dict.into_any())
    }
}

macro_rules! fields {
    ($($name:ident),*) => {
        $(impl<'py> ser::$name for Entries<'py> {
            type Ok = Object<'py>;
            type Error = Raised;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, x: &T) -> Result<(), Raised> {
                Ok(self.dict.set_item(key, x.serialize(self.to)?)?)
            }
            fn end(self) -> Done<'py> {
                self.to.tagged(self.variant, self.dict.into_any())
            }
        })*
    };
}
fields!(SerializeStruct, SerializeStructVariant);
