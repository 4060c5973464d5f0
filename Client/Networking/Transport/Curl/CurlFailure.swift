#if SystemLibraries && !canImport(Darwin)
  import CFerryCurl
  import Foundation

  extension CurlTransfer {
    /// Returns the error for a result of curl's; `nil` for success. The handle must not be reset yet.
    func failure(_ code: CURLcode, _ easy: EasyHandle) -> TransportError? {
      if code == CURLE_OK { return nil }
      if abandoned.load(ordering: .relaxed) { return cancellation }
      if let refusal { return refusal }
      let kind = kind(code, easy)
      let isOfTLS = kind == .secureConnectionFailed && !fault(code, easy).isPlain
      return TransportError(kind, message(kind, code, easy), isOfTLS: isOfTLS)
    }

    private func kind(_ code: CURLcode, _ easy: EasyHandle) -> TransportError.Kind {
      switch code {
      case CURLE_SSL_CONNECT_ERROR where HandshakeFault.isBreak(easy.failureText):
        .interrupted
      case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT:
        .offline
      case CURLE_OPERATION_TIMEDOUT:
        isConnected ? .timedOut : .offline
      case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR,
        CURLE_SEND_FAIL_REWIND, CURLE_HTTP2, CURLE_HTTP2_STREAM:
        .interrupted
      case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_USE_SSL_FAILED,
        CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
        .secureConnectionFailed
      case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL:
        // After a connection the address was good: then a redirect, or an answer other than HTTP, is
        // the reason.
        isConnected ? .other : .badAddress
      default:
        .other
      }
    }

    private func fault(_ code: CURLcode, _ easy: EasyHandle) -> HandshakeFault {
      HandshakeFault(
        code, verifyResult: easy.verifyResult, file: easy.authoritiesFile, text: easy.failureText)
    }

    private func message(
      _ kind: TransportError.Kind, _ code: CURLcode, _ easy: EasyHandle
    ) -> String {
      let summary = String(cString: curl_easy_strerror(code))
      let detail = easy.failureText.isEmpty ? summary : easy.failureText
      let reached = easy.effectiveAddress.flatMap { try? RequestAddress($0) } ?? address
      let endpoint = reached.endpoint(redirectedFrom: address)
      switch kind {
      case .offline where code == CURLE_OPERATION_TIMEDOUT:
        let limit = min(request.connectTimeout, request.timeout)
        return "no connection to \(endpoint) within \(limit)"
      case .offline:
        let number = easy.systemError
        let reason = number == 0 ? summary : String(cString: strerror(number))
        return "cannot reach \(endpoint): \(reason)"
      case .timedOut:
        return "no complete answer from \(endpoint) within \(request.timeout)"
      case .interrupted:
        return "the connection to \(endpoint) broke: \(detail)"
      case .secureConnectionFailed:
        let host = reached.host
        let explanation = fault(code, easy).explanation(host: host, detail)
        return "no secure connection to \(endpoint): \(explanation)"
      case .badAddress, .redirectRefused, .responseTooLarge, .cancelled, .fileFailed, .other:
        return "\(endpoint): \(detail)"
      }
    }
  }
#endif
