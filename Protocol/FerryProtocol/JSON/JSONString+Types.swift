// The types whose form is a text, or one of a few words.

extension SpaceName: JSONString {
  package static var textRule: String {
    "a space's name has 1 to 63 characters of A–Z a–z 0–9 . _ - and begins with a letter or digit"
  }
}

extension Epoch: JSONString {
  package static var textRule: String { "an epoch has sixteen hexadecimal digits" }
}

extension Cursor: JSONString {
  package static var textRule: String { "this is no cursor of a server" }
}

extension Digest: JSONString {
  package static var textRule: String { "a digest has 32 hexadecimal digits" }
}

extension DigestNode: JSONString {
  package static var textRule: String {
    "a node is named by 0 to \(depthMax) hexadecimal digits"
  }
}

extension MissionID: JSONString {
  package static var textRule: String {
    "a mission's name has 1 to 128 characters of A–Z a–z 0–9 . _ - and begins with a letter or "
      + "digit"
  }
}

extension BundleName: JSONString {
  package static var textRule: String {
    "a bundle's name has 1 to 64 characters of a–z 0–9 _ - and begins with a letter or digit"
  }
}

extension BundleVersion: JSONString {
  package static var textRule: String {
    "a version is a text of 1 to 4 numbers with dots, such as \"1.12\""
  }
}

extension BundleReason: JSONString {
  package init?(_ text: String) { self.init(checking: text) }

  package static var textRule: String {
    "a reason has at most \(charactersMax) characters and no control characters"
  }
}

extension DeviceName: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    let text = try reader.string()
    do throws(DeviceNameFault) {
      try self.init(checking: text)
    } catch {
      throw reader.malformed(error.reason)
    }
  }

  package func write(to json: inout JSONWriter) { json.string(text) }
}

extension DeviceID: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    self.init(try reader.uniqueID())
    if self == .server { throw reader.malformed("the nil UUID is no device") }
  }

  package func write(to json: inout JSONWriter) { json.string(value) }
}

extension OperationID: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    self.init(try reader.uniqueID())
  }

  package func write(to json: inout JSONWriter) { json.string(value) }
}

extension Role: JSONWord {}
extension ConflictPolicy: JSONWord {}
extension DeletePolicy: JSONWord {}
extension ColumnType: JSONWord {}
extension ClashRule: JSONWord {}
extension DeclaredColumn.Affinity: JSONWord {}
extension DeclaredColumn.Moment: JSONWord {}
extension DeclaredReference.Action: JSONWord {}
