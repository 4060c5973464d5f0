#if SystemLibraries && !canImport(Darwin)
  import CFerryCurl
  import Foundation

  extension EasyHandle {
    /// The settings of a prepared handle besides the request.
    struct Settings {
      let configuration: TransportConfiguration
      let proxyExceptions: String
      let proxies: ProxyAddresses
    }

    /// Sets every option for a transfer; throws if the request is not valid.
    func prepare(_ transfer: CurlTransfer, _ settings: Settings) throws(TransportError) {
      collectFailureText()
      set(CURLOPT_NOSIGNAL, true)
      set(CURLOPT_URL, transfer.request.url)
      setConnection(transfer, settings)
      setRedirects(transfer.request.method)
      try setMethod(transfer)
      try setFields(transfer.request, transfer.address)
      setLimits(transfer)
      transfer.proxies = settings.proxies
      setCallbacks(transfer)
      if let refusal {
        let reason = String(cString: curl_easy_strerror(refusal))
        throw TransportError(.other, "cannot prepare the request: \(reason)")
      }
    }

    private func setConnection(_ transfer: CurlTransfer, _ settings: Settings) {
      set(CURLOPT_PROTOCOLS_STR, "http,https")
      set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS)
      // Waits until the first connection shows whether it can be shared: only TLS shows this at once.
      set(CURLOPT_PIPEWAIT, transfer.address.isSecure)
      set(CURLOPT_TCP_NODELAY, true)
      set(CURLOPT_TCP_KEEPALIVE, true)
      set(CURLOPT_TCP_KEEPIDLE, 60)
      set(CURLOPT_TCP_KEEPINTVL, 15)
      // A cancelled transfer must not wait for the resolution of a name: all others would wait, too.
      set(CURLOPT_QUICK_EXIT, true)
      set(CURLOPT_USERAGENT, settings.configuration.userAgent)
      set(CURLOPT_NOPROXY, settings.proxyExceptions)
      set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
      if let proxy = settings.configuration.proxy { set(CURLOPT_PROXY, proxy) }
      if let file = settings.configuration.certificateAuthorities
        ?? transfer.request.certificateAuthorities
      {
        trust(file)
      }
    }

    private func setRedirects(_ method: TransportMethod) {
      set(CURLOPT_FOLLOWLOCATION, CurlTransfer.followsRedirects(method))
      set(CURLOPT_MAXREDIRS, 5)
      set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
      // 301 and 302 keep the method and the body, as 307 and 308 do; 303 asks for a GET.
      set(CURLOPT_POSTREDIR, Int(CURL_REDIR_POST_301 | CURL_REDIR_POST_302))
    }

    private func setMethod(_ transfer: CurlTransfer) throws(TransportError) {
      let request = transfer.request
      let hasBody = request.hasBody
      switch request.method {
      case .get where !hasBody:
        set(CURLOPT_HTTPGET, true)
      case .head:
        set(CURLOPT_NOBODY, true)
      case .post:
        set(CURLOPT_POST, true)
        try setBody(transfer)
      case .get, .put, .patch, .delete:
        if hasBody { try setBody(transfer) }
        set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
      }
    }

    /// Copies a body in memory as a whole, unless bandwidth is limited.
    private func setBody(_ transfer: CurlTransfer) throws(TransportError) {
      let request = transfer.request
      let isInMemory = request.file == nil && request.parts.isEmpty
      guard !isInMemory || transfer.gate?.limitsSending == true else {
        return setBody(request.body ?? [])
      }
      let source = try BodySource(request)
      transfer.source = source
      setUpload(of: source.count, from: Unmanaged.passUnretained(transfer).toOpaque())
    }

    private func setFields(
      _ request: TransportRequest, _ address: RequestAddress
    ) throws(TransportError) {
      if let name = request.headers.unsendableName {
        throw TransportError(
          .other, "\(address.endpoint): field \(name.debugDescription) cannot be sent")
      }
      for field in request.headers.fields {
        // For curl, "name:" means to omit the field.
        add(field: field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
      }
      // Curl's own additions: a form's type, and a pause of a second before the body.
      if request.headers["Content-Type"] == nil { add(field: "Content-Type:") }
      if request.headers["Expect"] == nil { add(field: "Expect:") }
      if request.headers["Accept-Encoding"] == nil { set(CURLOPT_ACCEPT_ENCODING, "zstd, gzip") }
      useFields()
    }

    private func setLimits(_ transfer: CurlTransfer) {
      set(CURLOPT_CONNECTTIMEOUT_MS, transfer.request.connectTimeout)
      // A moved server is found again soon; curl would keep the old address for a minute.
      set(CURLOPT_DNS_CACHE_TIMEOUT, 5)
      if transfer.limit == .exchange { set(CURLOPT_TIMEOUT_MS, transfer.request.timeout) }
    }

    private func setCallbacks(_ transfer: CurlTransfer) {
      // The loop retains the transfer for as long as the handle is in use.
      let context = Unmanaged.passUnretained(transfer).toOpaque()
      set(CURLOPT_HEADERFUNCTION, receiveHeadLine)
      set(CURLOPT_HEADERDATA, context)
      set(CURLOPT_WRITEFUNCTION, receiveBody)
      set(CURLOPT_WRITEDATA, context)
      if transfer.request.destinations != .any {
        setOpenSocket(openSocket)
        set(CURLOPT_OPENSOCKETDATA, context)
      }
      setBeforeRequest(connectionIsReady)
      set(CURLOPT_PREREQDATA, context)
      if transfer.isObserved {
        set(CURLOPT_NOPROGRESS, false)
        setProgress(reportProgress)
        set(CURLOPT_XFERINFODATA, context)
      }
    }
  }

  extension EasyHandle {
    /// Requests the body of `count` bytes from the transfer at `context`, part by part.
    fileprivate func setUpload(of count: Int, from context: UnsafeMutableRawPointer) {
      set(CURLOPT_POST, true)
      set(CURLOPT_POSTFIELDSIZE_LARGE, offset: count)
      set(CURLOPT_READFUNCTION, readBody)
      set(CURLOPT_READDATA, context)
      setSeek(seekBody)
      set(CURLOPT_SEEKDATA, context)
    }
  }

  private func transfer(_ context: UnsafeMutableRawPointer) -> CurlTransfer {
    Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
  }

  private func receiveHeadLine(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
  ) -> Int {
    guard let context else { return CurlTransfer.stop }
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer(context).receive(headLine: line) ? size * count : CurlTransfer.stop
  }

  private func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
  ) -> Int {
    guard let context else { return CurlTransfer.stop }
    return transfer(context).receive(UnsafeRawBufferPointer(start: bytes, count: size * count))
  }

  private func connectionIsReady(
    _ context: UnsafeMutableRawPointer?, _ remoteHost: UnsafeMutablePointer<CChar>?,
    _ localHost: UnsafeMutablePointer<CChar>?, _ remotePort: Int32, _ localPort: Int32
  ) -> Int32 {
    guard let context else { return CURL_PREREQFUNC_ABORT }
    let address = remoteHost.flatMap { NetworkAddress(literal: String(cString: $0)) }
    let port = UInt16(truncatingIfNeeded: remotePort)
    return transfer(context).connectionIsReady(to: address, port: port)
      ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
  }

  /// Opens the socket of a new connection, if the transfer may connect to the address.
  private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
    _ target: UnsafeMutablePointer<curl_sockaddr>?
  ) -> curl_socket_t {
    guard let context, let target, let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr)
    else { return CURL_SOCKET_BAD }
    let start = UnsafeRawPointer(target) + offset
    let bytes = UnsafeRawBufferPointer(start: start, count: Int(target.pointee.addrlen))
    // The port is at the same place in addresses of IPv4 and IPv6.
    let port = bytes.count < 4 ? 0 : UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    guard transfer(context).mayConnect(to: NetworkAddress(socket: bytes), port: port) else {
      return CURL_SOCKET_BAD
    }
    let descriptor = socket(
      target.pointee.family, target.pointee.socktype, target.pointee.protocol)
    if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return descriptor
  }

  private func readBody(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
  ) -> Int {
    guard let context else { return Int(CURL_READFUNC_ABORT) }
    let buffer = UnsafeMutableRawBufferPointer(start: buffer, count: size * count)
    return transfer(context).send(into: buffer)
  }

  /// Moves to the start when curl sends a body again.
  private func seekBody(
    _ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32
  ) -> Int32 {
    guard let context, origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
    return transfer(context).source?.seek(to: Int(offset)) == true
      ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
  }

  private func reportProgress(
    _ context: UnsafeMutableRawPointer?, _ receivedTotal: curl_off_t, _ received: curl_off_t,
    _ sentTotal: curl_off_t, _ sent: curl_off_t
  ) -> Int32 {
    guard let context else { return 1 }
    transfer(context).report(
      TransportProgress(
        sent: Int(sent), sentTotal: sentTotal > 0 ? Int(sentTotal) : nil, received: Int(received),
        receivedTotal: receivedTotal > 0 ? Int(receivedTotal) : nil))
    return 0
  }
#endif
