import FerryPlatform
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif
#if canImport(Security)
  import Security
#endif

/// Passes the events of a session's tasks to their transfers.
final class SessionTransfers: NSObject, URLSessionDataDelegate, Sendable {
  private let transfers = Mutex<[Int: SessionTransfer]>([:])
  private let certificateAuthorities: String?

  /// - Parameter certificateAuthorities: the PEM file to trust besides the system's authorities.
  init(certificateAuthorities: String?) {
    self.certificateAuthorities = certificateAuthorities
  }

  func add(_ transfer: SessionTransfer, for task: URLSessionTask) {
    transfers.withLock { $0[task.taskIdentifier] = transfer }
  }

  private func transfer(_ task: URLSessionTask) -> SessionTransfer? {
    transfers.withLock { $0[task.taskIdentifier] }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    transfer(dataTask)?.receive(response)
    completionHandler(.allow)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
  ) {
    transfer(dataTask)?.receive(data)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
    totalBytesSent: Int64, totalBytesExpectedToSend: Int64
  ) {
    transfer(task)?.sent(totalBytesSent)
  }

  /// Follows no redirect: the transfer follows them, by the rules of the transport.
  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    transfers.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.complete(error)
  }

  #if canImport(Security)
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      guard
        challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
        let file = certificateAuthorities ?? transfer(task)?.certificateAuthorities,
        let trust = challenge.protectionSpace.serverTrust
      else { return completionHandler(.performDefaultHandling, nil) }
      let authorities = CertificateFile.read(file)
      guard !authorities.isEmpty,
        SecTrustSetAnchorCertificates(trust, authorities as CFArray) == errSecSuccess,
        SecTrustSetAnchorCertificatesOnly(trust, false) == errSecSuccess,
        SecTrustEvaluateWithError(trust, nil)
      else { return completionHandler(.cancelAuthenticationChallenge, nil) }
      completionHandler(.useCredential, URLCredential(trust: trust))
    }
  #endif
}

#if canImport(Security)
  /// A PEM file of certificates (RFC 7468 §5).
  enum CertificateFile {
    /// Returns the certificates of a file; none if it cannot be read.
    static func read(_ path: String) -> [SecCertificate] {
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
      let parts = text.parts(between: "-----BEGIN CERTIFICATE-----")
      return parts.dropFirst().compactMap {
        let base64 = $0.parts(between: "-----END CERTIFICATE-----")[0]
        let data = Data(base64Encoded: String(base64), options: .ignoreUnknownCharacters)
        return data.flatMap { SecCertificateCreateWithData(nil, $0 as CFData) }
      }
    }
  }
#endif
