extension MissionRecord {
  /// Returns the record in the form of the mission routes' answers: numbers of 64 bits as numbers,
  /// the signature and its key in base64.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 512)
    json.missionRecord(self)
    return json.finish()
  }

  /// Reads an answer.
  package init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
      try reader.missionRecord()
    }
  }

  /// Returns a list as `GET …/missions` answers it.
  package static func encodedList(_ records: [MissionRecord]) -> [UInt8] {
    var json = JSONWriter(capacity: 64 + records.count * 512)
    var first = true
    json.raw("{\"missions\":[")
    for record in records {
      json.separate(&first)
      json.missionRecord(record)
    }
    json.raw("]}")
    return json.finish()
  }

  /// Reads such a list.
  package static func list(decoding bytes: [UInt8]) throws(MalformedMessage) -> [MissionRecord] {
    try decode(bytes, depth: 5) { (reader) throws(MalformedMessage) in
      var records: [MissionRecord] = []
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "missions":
          try reader.array { (reader) throws(MalformedMessage) in
            records.append(try reader.missionRecord())
          }
        default: try reader.skip()
        }
      }
      return records
    }
  }
}

extension JSONWriter {
  fileprivate mutating func missionRecord(_ record: MissionRecord) {
    raw("{\"mission\":")
    string(record.id.value)
    for (name, number) in [
      ("version", record.version), ("items", record.items), ("size", record.size),
      ("priority", record.priority), ("manifestSize", record.manifestSize),
      ("publishedAt", record.publishedAt),
    ] as [(StaticString, Int64)] {
      raw(",\"")
      raw(name)
      raw("\":")
      self.number(number)
    }
    raw(",\"title\":")
    string(record.title)
    raw(",\"summary\":")
    string(record.summary)
    raw(",\"after\":")
    strings(record.after.map(\.value))
    raw(",\"manifest\":")
    string(record.manifest.description)
    raw(",\"signature\":")
    record.signature.withUnsafeBytes { base64($0) }
    raw(",\"signer\":")
    record.signer.withUnsafeBytes { base64($0) }
    raw("}")
  }
}

extension JSONReader {
  fileprivate mutating func missionRecord() throws(MalformedMessage) -> MissionRecord {
    var values: [Name: Value] = [:]
    var id = ""
    var after: [MissionID] = []
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "mission": id = try reader.string()
      case "version", "items", "size", "priority", "manifestSize", "publishedAt":
        values[try key.name()] = .integer(try reader.integer())
      case "title", "summary", "manifest": values[try key.name()] = .text(try reader.string())
      case "signature", "signer": values[try key.name()] = .blob(try reader.base64())
      case "after":
        try reader.array { (reader) throws(MalformedMessage) in
          after.append(try reader.missionID())
        }
      default: try reader.skip()
      }
    }
    guard var record = MissionRecord(id: id, value: { values[$0] }) else {
      throw malformed("this is no mission")
    }
    record.after = after
    return record
  }
}
