//! Safe wrappers of JNI calls by one thread; each call is followed by a check for exceptions.

use std::ffi::{CStr, c_void};

use jni_sys::{JNIEnv, jbyteArray, jclass, jmethodID, jobject, jthrowable, jvalue};

/// JNI for one thread.
#[derive(Clone, Copy, Debug)]
pub struct Env(*mut JNIEnv);

/// Only functions up to JNI 1.4 are called.
macro_rules! jni {
    ($env:expr, $name:ident $(, $arg:expr)*) => {
        ((**$env.0).v1_4.$name)($env.0 $(, $arg)*)
    };
}

impl Env {
    /// The environment that the JVM gave to this thread.
    ///
    /// # Safety
    /// It must belong to this thread, and this thread must stay attached as long as it is used.
    pub unsafe fn new(env: *mut JNIEnv) -> Self {
        Self(env)
    }

    /// A global reference to a class.
    pub fn class(self, name: &CStr) -> Result<jclass, Thrown> {
        // SAFETY: the environment belongs to this thread.
        unsafe {
            let local = jni!(self, FindClass, name.as_ptr());
            self.check_exception()?;
            Ok(self.global(local))
        }
    }

    /// A static method of a class.
    pub fn method(self, class: jclass, name: &CStr, signature: &CStr) -> Result<jmethodID, Thrown> {
        // SAFETY: `class` is a class.
        let method = unsafe { jni!(self, GetStaticMethodID, class, name.as_ptr(), signature.as_ptr()) };
        self.check_exception()?;
        Ok(method)
    }

    /// Replaces a local reference by a global one.
    pub fn global(self, local: jobject) -> jobject {
        // SAFETY: it is a local reference, or null, which stays null.
        unsafe {
            let global = jni!(self, NewGlobalRef, local);
            jni!(self, DeleteLocalRef, local);
            global
        }
    }

    /// Deletes a global reference.
    pub fn forget(self, global: jobject) {
        // SAFETY: it is a global reference, or null.
        unsafe { jni!(self, DeleteGlobalRef, global) };
    }

    /// Deletes a local reference.
    pub fn forget_local(self, local: jobject) {
        // SAFETY: it is a local reference, or null.
        unsafe { jni!(self, DeleteLocalRef, local) };
    }

    /// Calls a static method that returns an object, as a local reference.
    ///
    /// # Safety
    /// Class, method and arguments must match.
    pub unsafe fn call_object(self, class: jclass, method: jmethodID, args: &[jvalue]) -> Result<jobject, Thrown> {
        // SAFETY: required of the caller.
        let result = unsafe { jni!(self, CallStaticObjectMethodA, class, method, args.as_ptr()) };
        self.check_exception()?;
        Ok(result)
    }

    /// Calls a static method that returns nothing.
    ///
    /// # Safety
    /// Class, method and arguments must match.
    pub unsafe fn call_void(self, class: jclass, method: jmethodID, args: &[jvalue]) -> Result<(), Thrown> {
        // SAFETY: required of the caller.
        unsafe { jni!(self, CallStaticVoidMethodA, class, method, args.as_ptr()) };
        self.check_exception()
    }

    /// Calls a static method that returns a number. It returns 0 after an exception, which `check_exception` reports.
    ///
    /// # Safety
    /// Class, method and arguments must match.
    #[inline]
    pub unsafe fn call_long(self, class: jclass, method: jmethodID, args: &[jvalue]) -> i64 {
        // SAFETY: required of the caller.
        unsafe { jni!(self, CallStaticLongMethodA, class, method, args.as_ptr()) }
    }

    /// Removes and returns the exception of the last call, if any.
    pub fn check_exception(self) -> Result<(), Thrown> {
        // SAFETY: the environment belongs to this thread.
        unsafe {
            let thrown = jni!(self, ExceptionOccurred);
            if thrown.is_null() {
                return Ok(());
            }
            jni!(self, ExceptionClear);
            Err(Thrown(thrown))
        }
    }

    /// A buffer over the engine's memory: a local reference.
    ///
    /// # Safety
    /// The memory must outlive every use of the buffer.
    pub unsafe fn buffer(self, memory: *mut u8, len: usize) -> Result<jobject, Thrown> {
        // SAFETY: required of the caller.
        let buffer = unsafe { jni!(self, NewDirectByteBuffer, memory.cast::<c_void>(), len as i64) };
        self.check_exception()?;
        Ok(buffer)
    }

    /// A Java array of these bytes, as a local reference.
    pub fn array(self, bytes: &[u8]) -> Result<jbyteArray, Thrown> {
        // SAFETY: the region is within the array, which is as long as the bytes.
        unsafe {
            let array = jni!(self, NewByteArray, bytes.len() as i32);
            self.check_exception()?;
            jni!(self, SetByteArrayRegion, array, 0, bytes.len() as i32, bytes.as_ptr().cast());
            Ok(array)
        }
    }

    /// The bytes of a Java array; the reference, which may be null, is deleted.
    pub fn bytes(self, array: jbyteArray) -> Vec<u8> {
        if array.is_null() {
            return Vec::new();
        }
        // SAFETY: the region is the whole array.
        unsafe {
            let mut bytes = vec![0; jni!(self, GetArrayLength, array).max(0) as usize];
            jni!(self, GetByteArrayRegion, array, 0, bytes.len() as i32, bytes.as_mut_ptr().cast());
            self.forget_local(array);
            bytes
        }
    }

    /// `toString` of an exception, until the host can give its message.
    pub fn plain_words(self, thrown: &Thrown) -> String {
        // SAFETY: every object has the method; its result is a string or null.
        unsafe {
            let class = jni!(self, GetObjectClass, thrown.0);
            let method = jni!(self, GetMethodID, class, c"toString".as_ptr(), c"()Ljava/lang/String;".as_ptr());
            let string = jni!(self, CallObjectMethodA, thrown.0, method, std::ptr::null());
            if self.check_exception().is_err() || string.is_null() {
                return "no message".to_owned();
            }
            let text = jni!(self, GetStringUTFChars, string, std::ptr::null_mut());
            if text.is_null() {
                return "no message".to_owned();
            }
            let message = CStr::from_ptr(text).to_string_lossy().into_owned();
            jni!(self, ReleaseStringUTFChars, string, text);
            self.forget_local(string);
            message
        }
    }
}

/// Something thrown: a local reference of the thread that caught it.
#[derive(Debug)]
pub struct Thrown(pub jthrowable);
