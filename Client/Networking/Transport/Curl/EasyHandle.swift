#if SystemLibraries && !canImport(Darwin)
  import CFerryCurl

  /// One curl easy handle with the memory it refers to.
  ///
  /// A class, because idle handles wait in a pool and C callbacks refer to running ones. It never
  /// leaves the transport's thread.
  final class EasyHandle {
    let pointer: UnsafeMutableRawPointer
    /// The first option rejected by curl.
    private(set) var refusal: CURLcode?
    /// The file of certificate authorities, if there is one.
    private(set) var authoritiesFile: String?
    private let errorText: UnsafeMutablePointer<CChar>
    private var fields: UnsafeMutablePointer<curl_slist>?

    /// Creates a handle; fails if memory runs out.
    init?() {
      guard let pointer = curl_easy_init() else { return nil }
      self.pointer = pointer
      errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
      errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
      curl_easy_cleanup(pointer)
      curl_slist_free_all(fields)
      errorText.deallocate()
    }

    /// Resets every option, but keeps TLS sessions and buffers for the next request.
    func reset() {
      curl_easy_reset(pointer)
      curl_slist_free_all(fields)
      fields = nil
      refusal = nil
      authoritiesFile = nil
      errorText.pointee = 0
    }

    func set(_ option: CURLoption, _ value: Int) {
      record(ferry_curl_set_long(pointer, option, value))
    }

    func set(_ option: CURLoption, _ value: Bool) { set(option, value ? 1 : 0) }

    func set(_ option: CURLoption, _ value: String) {
      record(ferry_curl_set_string(pointer, option, value))
    }

    func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
      record(ferry_curl_set_pointer(pointer, option, value))
    }

    func set(_ option: CURLoption, _ value: @escaping curl_write_callback) {
      record(ferry_curl_set_data_function(pointer, option, value))
    }

    func setBeforeRequest(_ value: @escaping curl_prereq_callback) {
      record(ferry_curl_set_before_request(pointer, value))
    }

    func setOpenSocket(_ value: @escaping curl_opensocket_callback) {
      record(ferry_curl_set_open_socket(pointer, value))
    }

    func setSeek(_ value: @escaping curl_seek_callback) {
      record(ferry_curl_set_seek(pointer, value))
    }

    func setProgress(_ value: @escaping curl_xferinfo_callback) {
      record(ferry_curl_set_progress(pointer, value))
    }

    func set(_ option: CURLoption, offset value: Int) {
      record(ferry_curl_set_offset(pointer, option, curl_off_t(value)))
    }

    /// Sets a duration in whole milliseconds, rounded up. The least is one: zero means no limit to
    /// curl.
    func set(_ option: CURLoption, _ value: Duration) {
      let parts = value.components
      let seconds = min(max(parts.seconds, 0), Int64(Int32.max) / 1000 - 1)
      let milliseconds =
        Int(seconds) * 1000 + Int((parts.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
      set(option, max(1, milliseconds))
    }

    /// Makes curl write descriptions of failures into the buffer of `failureText`.
    func collectFailureText() { set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(errorText)) }

    /// Sends a copy of `body`.
    func setBody(_ body: [UInt8]) {
      set(CURLOPT_POSTFIELDSIZE_LARGE, offset: body.count)
      body.withUnsafeBytes { bytes in
        // Without an address curl would call a read function for the bytes.
        withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { empty in
          guard let address = bytes.baseAddress ?? UnsafeRawPointer(empty.baseAddress) else {
            return
          }
          set(CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: address))
        }
      }
    }

    /// Trusts the authorities in a PEM file besides the system's.
    func trust(_ file: String) {
      authoritiesFile = file
      set(CURLOPT_CAINFO, file)
    }

    func add(field line: String) {
      guard let list = curl_slist_append(fields, line) else { return record(CURLE_OUT_OF_MEMORY) }
      fields = list
    }

    /// Sends the fields added so far.
    func useFields() {
      if let fields { set(CURLOPT_HTTPHEADER, UnsafeMutableRawPointer(fields)) }
    }

    /// Curl's description of a failure; empty if there is none.
    var failureText: String { String(cString: errorText) }

    /// The address of the current request after redirects.
    var effectiveAddress: String? {
      var text: UnsafePointer<CChar>?
      guard ferry_curl_get_string(pointer, CURLINFO_EFFECTIVE_URL, &text) == CURLE_OK else {
        return nil
      }
      return text.map { String(cString: $0) }
    }

    /// The method of the current request: a redirect may have turned a POST into a GET.
    var effectiveMethod: String? {
      var text: UnsafePointer<CChar>?
      guard ferry_curl_get_string(pointer, CURLINFO_EFFECTIVE_METHOD, &text) == CURLE_OK else {
        return nil
      }
      return text.map { String(cString: $0) }
    }

    /// OpenSSL's result for the server's certificate (X509_V_ERR_…), or 0.
    var verifyResult: Int {
      var number = 0
      ferry_curl_get_long(pointer, CURLINFO_SSL_VERIFYRESULT, &number)
      return number
    }

    /// The sent bytes of the body.
    var bytesSent: Int { offset(CURLINFO_SIZE_UPLOAD_T) }

    /// The received bytes of the response's body, before they are decoded.
    var bytesReceived: Int { offset(CURLINFO_SIZE_DOWNLOAD_T) }

    private func offset(_ info: CURLINFO) -> Int {
      var count: curl_off_t = 0
      ferry_curl_get_offset(pointer, info, &count)
      return Int(count)
    }

    /// The system's error number of a failed connection, or 0.
    var systemError: Int32 {
      var number = 0
      ferry_curl_get_long(pointer, CURLINFO_OS_ERRNO, &number)
      return Int32(truncatingIfNeeded: number)
    }

    private func record(_ code: CURLcode) {
      if code != CURLE_OK && refusal == nil { refusal = code }
    }
  }
#endif
