import FerryPlatform
import Foundation

/// A key of an S3-compatible store.
package struct AWSCredentials: Sendable, Equatable {
  package var accessKey: String
  package var secretKey: String
  /// For temporary keys.
  package var sessionToken: String?

  package init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    (self.accessKey, self.secretKey, self.sessionToken) = (accessKey, secretKey, sessionToken)
  }

  /// Reads `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`; `nil` if a key is
  /// missing.
  package init?(environment: [String: String]) {
    self.init(
      environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"],
      environment["AWS_SESSION_TOKEN"])
  }

  /// Reads the profile `default` of a file as the AWS command has it: lines of `name = value` below
  /// `[default]`, or without any heading. `nil` if a key is missing.
  package init?(file text: String) {
    var values: [String: String] = [:]
    var isDefault = true
    for line in text.lines {
      let line = line.trimmedASCII
      if line.begins(with: "#") || line.begins(with: ";") { continue }
      if line.begins(with: "[") {
        isDefault = line == "[default]"
      } else if isDefault, let sign = line.first("=") {
        let name = line[..<sign].trimmedASCII.lowercasedASCII
        values[name] = String(line[line.utf8.index(after: sign)...].trimmedASCII)
      }
    }
    self.init(
      values["aws_access_key_id"], values["aws_secret_access_key"], values["aws_session_token"])
  }

  private init?(_ accessKey: String?, _ secretKey: String?, _ sessionToken: String?) {
    guard let accessKey, let secretKey, !accessKey.isEmpty, !secretKey.isEmpty else { return nil }
    let token = sessionToken.flatMap { $0.isEmpty ? nil : $0 }
    self.init(accessKey: accessKey, secretKey: secretKey, sessionToken: token)
  }
}

/// The place of a key. A file is read again if the store refuses the key: it may be a new one.
package enum AWSCredentialSource: Sendable, Equatable {
  case fixed(AWSCredentials)
  case file(String)

  /// Reads the key. It blocks for as long as the disk takes.
  package func credentials() throws(ObjectStoreError) -> AWSCredentials {
    switch self {
    case .fixed(let credentials): return credentials
    case .file(let path):
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
        throw .configuration("the file of credentials \(path) cannot be read")
      }
      guard let credentials = AWSCredentials(file: text) else {
        throw .configuration(
          "\(path) has no aws_access_key_id and aws_secret_access_key below [default]")
      }
      return credentials
    }
  }
}
