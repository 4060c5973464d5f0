import FerryCommandLine
import FerryCryptography
import FerryMissionServer
import FerryProtocol
import FerrySyncServer

/// The output of the mission commands.
enum MissionReport {
  /// Reads a manifest's document, which has to match the record's hash and signature.
  static func manifest(
    _ document: [UInt8], of record: MissionRecord
  ) throws(CommandFailure) -> MissionManifest {
    let signer = try? Ed25519.PublicKey(record.signer)
    let message = MissionManifest.signedMessage(document)
    guard ContentHash(of: document) == record.manifest,
      signer?.isValid(record.signature, for: message) == true,
      let manifest = try? MissionManifest(decoding: document)
    else {
      throw CommandFailure(
        "the manifest of mission \(record.id) is damaged",
        why: "it does not match the hash in the catalogue",
        next: "publish the mission again", code: "damaged_manifest")
    }
    return manifest
  }

  static func show(
    _ record: MissionRecord, _ manifest: MissionManifest, _ damaged: [String], isJSON: Bool
  ) throws {
    let output = TextOutput.standardOutput
    if isJSON {
      guard case .object(let members) = record.json else { return }
      let items = JSONText.array(manifest.items.map(\.json))
      let more: [(String, JSONText)] = [
        ("chunkSize", .int(manifest.chunkSize)), ("contents", items),
        ("damaged", .array(damaged.map { .string($0) })),
      ]
      return try output.line(JSONText.object(members + more).text)
    }
    try output.lines([
      "mission    \(record.id) (version \(record.version))", "title      \(record.title)",
      "summary    \(record.summary)",
      "size       \(record.sizeText) in \(record.items.counted("item"))",
      "priority   \(record.priority)",
      "after      \(record.after.map(\.value).joined(separator: " "))",
      "published  \(RFC3339.text(milliseconds: record.publishedAt))",
      "manifest   \(record.manifest)", "signer     \(Base64.text(record.signer))", "",
    ])
    var table = TextTable(["PATH", "KIND", "TYPE", "SIZE", "SHA-256", "URL"])
    for item in manifest.items {
      table.append([
        item.path, item.kind.rawValue, item.mediaType, ByteSize(bytes: Int(item.size)).text,
        String(item.hash.description.prefix(12)), item.url ?? "",
      ])
    }
    try output.lines(table.lines(width: Terminal.current().tableWidth))
    for path in damaged {
      try TextOutput.standardError.line(
        "ferryd: item \(path) is missing or damaged: publish the mission again")
    }
  }
}

extension MissionRecord {
  var json: JSONText {
    .object([
      ("mission", .string(id.value)), ("version", .int(version)), ("title", .string(title)),
      ("summary", .string(summary)), ("items", .int(items)), ("size", .int(size)),
      ("priority", .int(priority)), ("after", .array(after.map { .string($0.value) })),
      ("manifest", .string(manifest.description)), ("signer", .string(Base64.text(signer))),
      ("publishedAt", .string(RFC3339.text(milliseconds: publishedAt))),
    ])
  }

  var sizeText: String { ByteSize(bytes: Int(size)).text }
}

extension MissionItem {
  fileprivate var json: JSONText {
    .object([
      ("path", .string(path)), ("kind", .string(kind.rawValue)),
      ("mediaType", .string(mediaType)), ("size", .int(size)),
      ("sha256", .string(hash.description)), ("url", .string(orNull: url)),
      ("hosted", .bool(isHosted)),
    ])
  }
}
