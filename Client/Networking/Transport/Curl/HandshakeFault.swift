#if SystemLibraries && !canImport(Darwin)
  import CFerryCurl

  /// The reason why TLS failed, as far as the user can act on it.
  enum HandshakeFault: Equatable {
    /// The certificate's issuer is not trusted on this device.
    case unknownIssuer
    case expired
    case notYetValid
    /// The certificate is for another host.
    case otherName
    /// The file of certificate authorities cannot be read.
    case badAuthorities(file: String)
    /// The server answered the handshake with something else than TLS.
    case withoutTLS
    /// Any other reason, in curl's words.
    case other

    /// Creates a fault from curl's result.
    ///
    /// - Parameters:
    ///   - code: curl's result.
    ///   - verifyResult: OpenSSL's (x509_vfy.h), 0 if the chain itself is good.
    ///   - file: of certificate authorities, if there is one.
    ///   - text: curl's description, with OpenSSL's error number.
    init(_ code: CURLcode, verifyResult: Int, file: String?, text: String = "") {
      switch code {
      case CURLE_SSL_CONNECT_ERROR where Self.isWithoutTLS(text): self = .withoutTLS
      case CURLE_SSL_CACERT_BADFILE: self = .badAuthorities(file: file ?? "the system's file")
      // Curl compares names itself, before it asks OpenSSL about the chain: then there is no result.
      case CURLE_PEER_FAILED_VERIFICATION where verifyResult <= 1: self = .otherName
      default: self.init(verifyResult: verifyResult)
      }
    }

    /// Creates a fault from OpenSSL's result for a chain of certificates.
    init(verifyResult: Int) {
      switch verifyResult {
      case 2, 18...21, 26, 27: self = .unknownIssuer
      case 9: self = .notYetValid
      case 10: self = .expired
      case 62, 64: self = .otherName
      default: self = .other
      }
    }

    /// Returns the fault and the remedy.
    func explanation(host: String, _ detail: String) -> String {
      switch self {
      case .unknownIssuer:
        "its certificate is from an authority that this device does not trust; if it is your own, "
          + "name its certificate as a PEM file (--ca FILE, or FERRY_CA)"
      case .expired: "its certificate has expired, or this device's clock is ahead"
      case .notYetValid: "its certificate is not valid yet, or this device's clock is behind"
      case .otherName: "its certificate is for another name than \(host)"
      case .badAuthorities(let file):
        "the certificate authorities in \(file) cannot be read: it has to be a PEM file"
      case .withoutTLS: "it answered without TLS; if that is intended, use http:// in its address"
      case .other: detail
      }
    }

    /// True if nothing shows that the server knows TLS.
    var isPlain: Bool {
      switch self {
      case .withoutTLS, .badAuthorities: true
      case .unknownIssuer, .expired, .notYetValid, .otherName, .other: false
      }
    }

    /// Returns true if OpenSSL read something else than a record of TLS. The reason is the low part
    /// of the error number (err.h, sslerr.h): a wrong version, a too long packet, or, since OpenSSL
    /// 3.2, a failure of the record layer.
    static func isWithoutTLS(_ text: String) -> Bool {
      reason(in: text).map { [267, 198, 313].contains($0) } ?? false
    }

    /// Returns true if the connection broke during the handshake: nothing is known of the server. The
    /// network may be the reason, and another attempt may succeed. A failure of TLS itself has one of
    /// OpenSSL's error numbers.
    static func isBreak(_ text: String) -> Bool {
      let unexpectedEnd: UInt32 = 294
      return reason(in: text).map { $0 == unexpectedEnd } ?? true
    }

    /// Returns the reason in the first error number of OpenSSL; `nil` for a text without one.
    private static func reason(in text: String) -> UInt32? {
      text.firstMatch(of: /error:([0-9A-Fa-f]{8})/).flatMap { UInt32($0.output.1, radix: 16) }
        .map { $0 & 0x7F_FFFF }
    }
  }
#endif
