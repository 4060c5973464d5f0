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
  ///
  /// - Parameter next: The place at which the list continues; `nil` at the end.
  package static func encodedList(_ records: [MissionRecord], next: MissionID?) -> [UInt8] {
    var json = JSONWriter(capacity: 64 + records.count * 512)
    json.object { json in
      json.key("missions")
      json.array(of: records) { json, record in json.missionRecord(record) }
      json.member("next", next?.value)
    }
    return json.finish()
  }

  /// Reads such a list.
  package static func list(
    decoding bytes: [UInt8]
  ) throws(MalformedMessage) -> (records: [MissionRecord], next: MissionID?) {
    try decode(bytes, depth: 5) { (reader) throws(MalformedMessage) in
      var (records, next) = ([MissionRecord](), MissionID?.none)
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "missions":
          try reader.array { (reader) throws(MalformedMessage) in
            records.append(try reader.missionRecord())
          }
        case "next": next = try reader.nextMission()
        default: try reader.skip()
        }
      }
      return (records, next)
    }
  }
}

extension JSONReader {
  /// Reads the place at which a list continues, a mission; null at the end.
  mutating func nextMission() throws(MalformedMessage) -> MissionID? {
    if try null() { return nil }
    guard let mission = MissionID(try string()) else {
      throw malformed("next is no mission's name")
    }
    return mission
  }
}

extension JSONWriter {
  fileprivate mutating func missionRecord(_ record: MissionRecord) {
    object { json in
      json.member("mission", record.id.value)
      json.member("version", record.version)
      json.member("items", record.items)
      json.member("size", record.size)
      json.member("priority", record.priority)
      json.member("manifestSize", record.manifestSize)
      json.member("publishedAt", record.publishedAt)
      json.member("title", record.title)
      json.member("summary", record.summary)
      json.key("after")
      json.array(of: record.after.map(\.value))
      json.member("manifest", record.manifest.description)
      json.member("signature", base64: record.signature)
      json.member("signer", base64: record.signer)
      guard let bundle = record.bundle else { return }
      json.member("kind", BundleListing.kind)
      json.member("rollout", bundle.share.hundredths)
      json.member("minShell", ifPresent: bundle.minShell?.description)
      json.member("withdrawnAt", ifPresent: bundle.withdrawnAt)
    }
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
      case "version", "items", "size", "priority", "manifestSize", "publishedAt", "rollout",
        "withdrawnAt":
        values[try key.name()] = .integer(try reader.integer())
      case "title", "summary", "manifest", "kind", "minShell":
        values[try key.name()] = .text(try reader.string())
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
