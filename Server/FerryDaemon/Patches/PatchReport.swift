import FerryCommandLine
import FerryPlatform
import FerryProtocol
import FerrySyncServer

/// The output of `ferryd patch`.
enum PatchReport {
  static func signed(_ document: PatchDocument, path: String, isJSON: Bool) throws {
    if isJSON {
      return try TextOutput.standardOutput.line(
        JSONText.object([("file", .string(path))] + members(document)).text)
    }
    try TextOutput.standardOutput.line(
      "signed \(path): \(document.behaviour) of \(document.app) "
        + "\(document.appVersions.joined(separator: ", ")), sequence \(document.sequence), until "
        + RFC3339.text(milliseconds: document.expires))
  }

  static func show(
    _ document: PatchDocument, _ trust: PatchSigning.Trust, hasScript: Bool, isJSON: Bool
  ) throws {
    if isJSON {
      var all = members(document)
      if case .signer(let key) = trust { all.append(("signer", .string(key))) }
      all.append(("trusted", trust == .unchecked ? .null : .bool(trust != .other)))
      if hasScript { all.append(("script", .string(document.script))) }
      return try TextOutput.standardOutput.line(JSONText.object(all).text)
    }
    let services = document.services.isEmpty ? "none" : document.services.joined(separator: ", ")
    var lines = [
      "behaviour  \(document.behaviour)",
      "app        \(document.app) \(document.appVersions.joined(separator: ", "))",
      "sequence   \(document.sequence)",
      "expires    \(RFC3339.text(milliseconds: document.expires))",
      "services   \(services)",
      "script     \(ByteSize(bytes: document.script.utf8.count).text)",
      "signature  \(text(trust))",
    ]
    if hasScript {
      lines +=
        [""]
        + document.script.parts(at: "\n")
        .map { String($0).escapedForTerminal }
    }
    try TextOutput.standardOutput.lines(lines)
  }

  private static func text(_ trust: PatchSigning.Trust) -> String {
    switch trust {
    case .unchecked: "not checked; --trust KEY checks it"
    case .signer(let key): "by \(key)"
    case .other: "by none of the keys of --trust, or the patch was changed"
    }
  }

  private static func members(_ document: PatchDocument) -> [(String, JSONText)] {
    [
      ("app", .string(document.app)),
      ("appVersions", .array(document.appVersions.map(JSONText.string))),
      ("behaviour", .string(document.behaviour)), ("sequence", .int(document.sequence)),
      ("expires", .int(document.expires)),
      ("services", .array(document.services.map(JSONText.string))),
    ]
  }
}
