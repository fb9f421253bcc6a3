//! Safe wrappers for JNI calls from one thread. Each call is followed by a check for exceptions.

use std::ffi::{CStr, c_void};

use jni_sys::{JNIEnv, jbyteArray, jclass, jmethodID, jobject, jthrowable, jvalue};

/// JNI access for one thread.
#[derive(Clone, Copy, Debug)]
pub struct Env(*mut JNIEnv);

/// Calls a JNI function. Only functions up to JNI 1.4 are used.
macro_rules! jni {
    ($env:expr, $name:ident $(, $arg:expr)*) => {
        ((**$env.0).v1_4.$name)($env.0 $(, $arg)*)
    };
}

impl Env {
    /// Wraps the environment that the JVM gave to this thread.
    ///
    /// # Safety
    /// The environment must belong to this thread, which must stay attached while the environment is used.
    pub unsafe fn new(env: *mut JNIEnv) -> Self {
        Self(env)
    }

    /// Returns a global reference to a class.
    pub fn class(self, name: &CStr) -> Result<jclass, Thrown> {
        // SAFETY: the environment belongs to this thread.
        unsafe {
            let local = jni!(self, FindClass, name.as_ptr());
            self.check_exception()?;
            Ok(self.global(local))
        }
    }

    /// Finds a static method of a class.
    pub fn method(self, class: jclass, name: &CStr, signature: &CStr) -> Result<jmethodID, Thrown> {
        // SAFETY: `class` is a reference to a class.
        let method = unsafe { jni!(self, GetStaticMethodID, class, name.as_ptr(), signature.as_ptr()) };
        self.check_exception()?;
        Ok(method)
    }

    /// Replaces a local reference with a global reference.
    pub fn global(self, local: jobject) -> jobject {
        // SAFETY: `local` is a local reference, or null, for which the result is null.
        unsafe {
            let global = jni!(self, NewGlobalRef, local);
            jni!(self, DeleteLocalRef, local);
            global
        }
    }

    /// Deletes a global reference.
    pub fn delete_global(self, global: jobject) {
        // SAFETY: `global` is a global reference, or null.
        unsafe { jni!(self, DeleteGlobalRef, global) };
    }

    /// Deletes a local reference.
    pub fn forget_local(self, local: jobject) {
        // SAFETY: `local` is a local reference, or null.
        unsafe { jni!(self, DeleteLocalRef, local) };
    }

    /// Calls a static method that returns an object, and returns a local reference to the object.
    ///
    /// # Safety
    /// The class, the method and the arguments must match.
    pub unsafe fn call_object(self, class: jclass, method: jmethodID, args: &[jvalue]) -> Result<jobject, Thrown> {
        // SAFETY: guaranteed by the caller.
        let result = unsafe { jni!(self, CallStaticObjectMethodA, class, method, args.as_ptr()) };
        self.check_exception()?;
        Ok(result)
    }

    /// Calls a static method without a return value.
    ///
    /// # Safety
    /// The class, the method and the arguments must match.
    pub unsafe fn call_void(self, class: jclass, method: jmethodID, args: &[jvalue]) -> Result<(), Thrown> {
        // SAFETY: guaranteed by the caller.
        unsafe { jni!(self, CallStaticVoidMethodA, class, method, args.as_ptr()) };
        self.check_exception()
    }

    /// Calls a static method that returns a number. After an exception the result is 0, and `check_exception` reports
    /// the exception.
    ///
    /// # Safety
    /// The class, the method and the arguments must match.
    #[inline]
    pub unsafe fn call_long(self, class: jclass, method: jmethodID, args: &[jvalue]) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe { jni!(self, CallStaticLongMethodA, class, method, args.as_ptr()) }
    }

    /// Clears and returns the exception that the last call threw, if any.
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

    /// Creates a Java buffer over the engine's memory, as a local reference.
    ///
    /// # Safety
    /// The memory must outlive every use of the buffer.
    pub unsafe fn buffer(self, memory: *mut u8, len: usize) -> Result<jobject, Thrown> {
        // SAFETY: guaranteed by the caller.
        let buffer = unsafe { jni!(self, NewDirectByteBuffer, memory.cast::<c_void>(), len as i64) };
        self.check_exception()?;
        Ok(buffer)
    }

    /// Creates a Java array of these bytes, as a local reference.
    pub fn array(self, bytes: &[u8]) -> Result<jbyteArray, Thrown> {
        // SAFETY: the region is within the array, which is as long as `bytes`.
        unsafe {
            let array = jni!(self, NewByteArray, bytes.len() as i32);
            self.check_exception()?;
            jni!(self, SetByteArrayRegion, array, 0, bytes.len() as i32, bytes.as_ptr().cast());
            Ok(array)
        }
    }

    /// Returns the bytes of a Java array, and deletes the reference, which may be null.
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

    /// The result of an exception's `toString`, for use until the host can provide a message.
    pub fn plain_words(self, thrown: &Thrown) -> String {
        // SAFETY: every object has this method, and its result is a string or null.
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

/// A Java exception that was thrown, as a local reference of the thread that caught it.
#[derive(Debug)]
pub struct Thrown(pub jthrowable);
