/// The options for a bearer token: by a file, standard input, the environment, or the token itself.
///
/// ```
/// ferry init --server https://sync.example.org --space team --token-file team.token
/// vault read team | ferry init --server https://sync.example.org --space team --token-file -
/// ```
package enum TokenOptions {
  /// The most bytes of a token's file: a JSON Web Token has a few thousand.
  package static let bytesMax = 64 << 10

  /// Returns the options.
  ///
  /// - Parameter help: The token's purpose, as a sentence.
  package static func options(_ help: String) -> [OptionSpec] {
    [
      OptionSpec(
        "token", value: "TOKEN",
        help: "\(help) On a command line, other users of this machine see it in `ps`: prefer "
          + "--token-file.",
        environment: "FERRY_TOKEN"),
      OptionSpec(
        "token-file", value: "FILE", help: "A file with the token; - for standard input.",
        kind: .file, environment: "FERRY_TOKEN_FILE"),
    ]
  }

  /// Returns the token; `nil` if none is given. An option counts more than the environment. Warns
  /// on standard error if all users may read the token's file.
  ///
  /// - Throws: `CommandFailure` if the file cannot be read or has no token.
  package static func token(_ arguments: ParsedArguments) throws -> String? {
    let token = arguments.stringIfPresent("token")
    guard let path = arguments.stringIfPresent("token-file") else { return token }
    guard token != nil else { return try read(path) }
    guard arguments.source("token-file") == .commandLine else { return token }
    guard arguments.source("token") != .commandLine else {
      throw CommandFailure(
        "--token and --token-file exclude each other", why: "both are given",
        next: "leave --token out", status: .usage, code: "two_tokens")
    }
    return try read(path)
  }

  private static func read(_ path: String) throws -> String {
    let file: SecretFile
    do {
      file = try SecretFile(path, bytesMax: bytesMax)
    } catch {
      throw CommandFailure(
        "the token cannot be read", why: "\(path): \(error.why)",
        next: "name a file with the token", code: "cannot_read")
    }
    if file.isOpen {
      try TextOutput.standardError.line(
        "warning: all users of this machine may read the token in \(path): run `chmod 600 FILE`"
          .escapedForTerminal)
    }
    guard let token = token(in: file.content) else {
      throw CommandFailure(
        "the token cannot be read",
        why: "\(path) has \(file.content.isEmpty ? "no bytes" : "more than one line of text")",
        next: "name a file with the token, and nothing else", code: "no_token")
    }
    return token
  }

  /// Returns the only word of the bytes, with white space around it; `nil` if there is no such
  /// word.
  static func token(in content: [UInt8]) -> String? {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }
    let word = content.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
    guard content.count <= bytesMax, !word.isEmpty, word.allSatisfy({ 0x21...0x7E ~= $0 }) else {
      return nil
    }
    return String(decoding: Array(word), as: UTF8.self)
  }
}
