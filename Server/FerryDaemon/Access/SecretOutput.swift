import FerryCommandLine
import FerrySyncServer
import Foundation

/// The destination of a new secret: standard output, or a file readable by this user only.
struct SecretOutput {
  static let option = OptionSpec(
    "out", value: "FILE",
    help: "Write the secret into a new file that only this user may read, instead of printing it.",
    kind: .file)

  private let path: String?
  private let isJSON: Bool

  init(_ arguments: ParsedArguments) throws {
    path = arguments.stringIfPresent("out")
    isJSON = arguments.flag("json")
  }

  /// Writes the file. Throws if it is there already, or cannot be written.
  func prepare(_ secret: AccessToken) throws {
    guard let path else { return }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(path, errno) }
    defer { close(descriptor) }
    let bytes = Array((secret.text + "\n").utf8)
    guard fchmod(descriptor, 0o600) == 0,
      write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0
    else {
      let code = errno
      unlink(path)
      throw Self.failure(path, code)
    }
  }

  /// Reports the token.
  func show(_ secret: AccessToken, _ token: StoredToken, _ note: String) throws {
    if isJSON {
      guard case .object(let members) = token.json else { return }
      let place: (String, JSONText) =
        path.map { ("file", .string($0)) } ?? ("token", .string(secret.text))
      return try TextOutput.standardOutput.line(JSONText.object([place] + members).text)
    }
    if let path {
      return try TextOutput.standardError.line("ferryd: token \(token.text) is in \(path)")
    }
    try TextOutput.standardOutput.line(secret.text)
    try TextOutput.standardError.line("ferryd: token \(token.text) \(note)")
  }

  private static func failure(_ path: String, _ code: Int32) -> CommandFailure {
    CommandFailure(
      "no token was created", why: "\(path): \(String(cString: strerror(code)))",
      next: "name a file that does not exist, in a folder that you may write to",
      code: "secret_file")
  }
}
