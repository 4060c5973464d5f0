import FerryCommandLine
import FerryCryptography
import FerryMissionServer
import FerryProtocol
import FerrySyncServer
import Foundation

/// Reads and writes the files of `ferryd patch`.
enum PatchSigning {
  /// The result of a patch's check against the key of the command line.
  enum Trust: Equatable {
    /// The command line names no key.
    case unchecked
    /// This key, in base64.
    case signer(String)
    case other
  }

  /// Returns the patch of the command line, checked as apps check it.
  static func document(_ arguments: ParsedArguments) throws -> PatchDocument {
    let path = try arguments.string("script")
    let limits = PatchDocumentLimits.standard
    let script = try content(of: path, limit: limits.scriptBytes, "the script")
    guard let script = String(validating: script, as: UTF8.self) else {
      throw CommandFailure(
        "\(path) is no script", why: "it is not UTF-8", next: "save it as UTF-8", code: "bad_script"
      )
    }
    let now = CommandMark.now.at
    let rest = try arguments.duration("expires").components.seconds.multipliedReportingOverflow(
      by: 1_000)
    guard rest.partialValue > 0 || rest.overflow else {
      throw UsageError(
        .invalidValue, "the patch would have ended already", why: "--expires is less than a second",
        next: "write --expires 14d")
    }
    let document = PatchDocument(
      app: try arguments.string("app"), appVersions: arguments.strings("app-version"),
      behaviour: try arguments.string("behaviour"),
      sequence: try arguments.integerIfPresent("sequence").map(Int64.init) ?? now / 1_000,
      expires: rest.overflow ? .max : now &+ rest.partialValue,
      services: arguments.strings("service"), script: script)
    if let fault = document.fault(limits: limits) {
      throw CommandFailure(
        "this is no patch", why: fault, next: "correct the options or the script",
        status: .usage, code: "bad_patch")
    }
    return document
  }

  /// Returns the signer of `--key`, which has to exist: no app trusts a new key.
  static func signer(_ arguments: ParsedArguments) throws -> MissionSigner {
    let path = try arguments.string("key")
    guard let signer = try keyFile(path, { try MissionSigner.existing(file: path) }) else {
      throw CommandFailure(
        "there is no key at \(path)", why: "the file does not exist",
        next: "make one with `ferryd patch key --key FILE`, and build it into the app",
        code: "signing_key")
    }
    return signer
  }

  /// Returns the signer of `--key`, with a new key if there is no file.
  static func newSigner(_ arguments: ParsedArguments) throws -> MissionSigner {
    let path = try arguments.string("key")
    return try keyFile(path) { try MissionSigner(file: path) }
  }

  private static func keyFile<Answer>(
    _ path: String, _ body: () throws -> Answer
  ) throws -> Answer {
    do {
      return try body()
    } catch let error as SigningKeyError {
      let next =
        if case .notPrivate = error { "chmod 600 \(path)" } else {
          "name a file with an Ed25519 key that this user may read, or a new one"
        }
      throw CommandFailure(
        "there is no key to sign patches with", why: error.description, next: next,
        code: "signing_key")
    }
  }

  /// Returns the path of a script's patch: `discount.ferrypatch` beside `discount.js`.
  static func target(of script: String) -> String {
    NSString(string: script).deletingPathExtension + ".ferrypatch"
  }

  static func write(_ text: String, to path: String) throws {
    do {
      try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    } catch {
      throw CommandFailure(
        "\(path) was not written", why: error.localizedDescription,
        next: "check the folder, or name another file with --out", code: "file_failed")
    }
  }

  /// Reads a signed patch, and checks nothing.
  static func read(_ path: String) throws -> SignedDocument {
    let limit = PatchDocumentLimits.standard.documentBytes
    var bytes = try content(of: path, limit: limit, "the patch")
    if bytes.last == 0x0A { bytes.removeLast() }
    guard let signed = SignedDocument(bytes) else {
      throw notAPatch(path, "it has no signature in compact form (RFC 7515)")
    }
    return signed
  }

  static func decode(_ signed: SignedDocument, _ path: String) throws -> PatchDocument {
    do throws(MalformedMessage) {
      return try PatchDocument(decoding: signed.payload)
    } catch {
      throw notAPatch(path, error.description)
    }
  }

  static func trust(of signed: SignedDocument, _ arguments: ParsedArguments) throws -> Trust {
    let texts = arguments.strings("trust")
    for text in texts {
      let bytes = Array(text.utf8).withUnsafeBufferPointer { Base64.decode($0) }
      guard let key = bytes.flatMap({ try? Ed25519.PublicKey($0) }) else {
        throw UsageError(
          .invalidValue, "'\(text)' is no public key", why: "a key is 32 bytes in base64",
          next: "give the output of `ferryd patch key`")
      }
      if signed.isSigned(by: key, type: PatchDocument.signatureType) { return .signer(text) }
    }
    return texts.isEmpty ? .unchecked : .other
  }

  private static func notAPatch(_ path: String, _ why: String) -> CommandFailure {
    CommandFailure(
      "\(path) is no patch", why: why, next: "give a file that `ferryd patch sign` made",
      code: "bad_patch")
  }

  private static func content(of path: String, limit: Int, _ name: String) throws -> [UInt8] {
    let bytes: [UInt8]
    do {
      let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      defer { try? file.close() }
      bytes = Array(try file.read(upToCount: limit + 1) ?? Data())
    } catch {
      throw CommandFailure(
        "\(name) cannot be read", why: "\(path): \(error.localizedDescription)",
        next: "check the path, and that this user may read the file", code: "file_failed")
    }
    guard bytes.count <= limit else {
      throw CommandFailure(
        "\(path) is too large", why: "\(name) has more than \(limit) bytes",
        next: "name another file", code: "too_large")
    }
    return bytes
  }
}
