import FerryProtocol

// The answers for administrators (SPEC.md §32), as in openapi.yaml.
extension SpaceOverview {
  func write(to json: inout JSONWriter, now: Int64) {
    let usage = usage.today(now)
    json.object { json in
      json.member("space", space.name.value)
      json.member("epoch", space.epoch.description)
      json.member("head", digits: space.head)
      json.member("retention", space.retention.milliseconds)
      json.member("horizon", digits: space.retentionHorizon)
      json.member("schemaVersion", schemaVersion)
      json.member("records", usage.records)
      json.member("bytes", usage.bytes)
      json.member("devices", usage.devices)
      json.member("bufferedPackets", usage.packets)
      json.member("bufferedBytes", usage.packetBytes)
      json.member("writtenToday", usage.written)
      json.member("lastHour", lastHour)
    }
  }
}

extension DeviceOverview {
  /// - Parameter head: The space's head.
  func write(to json: inout JSONWriter, head: SequenceNumber) {
    json.object { json in
      json.member("device", device.value)
      json.member("name", name?.text)
      json.member("principal", principal)
      json.member("client", client)
      json.member("seenAt", seenAt)
      json.member("operations", operations)
      json.member("bufferedPackets", bufferedPackets)
      json.member("bufferedBytes", bufferedBytes)
      json.member("reached", reached.map { String($0) })
      json.member("behind", reached.map { String(max(0, head - $0)) })
    }
  }
}

extension Rejection {
  func write(to json: inout JSONWriter, _ names: [DeviceID: DeviceIdentity]) {
    json.object { json in
      json.member("firstAt", firstAt)
      json.member("lastAt", lastAt)
      json.member("times", times)
      json.member("code", code)
      json.member("detail", detail)
      json.member("principal", principal)
      json.member("device", device?.value)
      json.member("name", device.flatMap { names[$0]?.name?.text })
      json.member("table", key?.table)
      json.member("record", key?.record)
    }
  }
}

extension ActivityCount: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("at", at)
      json.member("operations", operations)
      json.member("conflicts", conflicts)
      json.member("rejected", rejected)
    }
  }
}

extension DeviceIdentity: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("device", device.value)
      json.member("name", name?.text)
      json.member("principal", principal)
    }
  }
}

extension ListedRecord {
  /// - Parameter valueBytes: Larger values are replaced by their number of bytes.
  func write(to json: inout JSONWriter, valueBytes: Int) {
    json.object { json in
      json.member("record", record)
      json.member("sequence", digits: sequence)
      json.member("alive", state.isAlive)
      json.key("columns")
      json.array(of: state.columns) { json, column in
        column.write(to: &json, valueBytes: valueBytes)
      }
      state.inserted?.stamp.write(to: &json, named: "inserted")
      state.deleted?.stamp.write(to: &json, named: "deleted")
    }
  }
}

extension ColumnState {
  fileprivate func write(to json: inout JSONWriter, valueBytes: Int) {
    let text = value.encoded()
    json.object { json in
      json.member("column", name)
      if text.count <= valueBytes {
        json.key("value")
        json.raw(text)
      } else {
        json.member("bytes", text.count)
      }
      stamp.writeMembers(to: &json)
      json.member("sequence", digits: origin)
    }
  }
}

extension Stamp {
  fileprivate func write(to json: inout JSONWriter, named name: StaticString) {
    json.key(name)
    json.object { writeMembers(to: &$0) }
  }

  fileprivate func writeMembers(to json: inout JSONWriter) {
    json.member("time", time)
    json.member("device", device.value)
  }
}

extension HistoryEntry: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("operation", id.value)
      json.member("sequence", digits: sequence)
      json.member("kind", kind.rawValue)
      json.member("batch", id.value.version == UniqueID.effectVersion)
      json.member("time", time)
      json.member("device", device.value)
      json.member("base", digits: base)
      json.key("data")
      if let data { json.raw(data) } else { json.raw("null") }
      json.key("outcome")
      if let outcome { json.raw(outcome) } else { json.raw("\"applied\"") }
    }
  }
}

extension SpaceSchema {
  /// Writes the answer for an acceptable schema.
  func writeFit(to json: inout JSONWriter) {
    json.object { json in
      json.member("fits", true)
      json.member("version", version)
    }
  }
}

extension Problem {
  /// Writes the answer for an unacceptable schema.
  func writeMisfit(to json: inout JSONWriter) {
    json.object { json in
      json.member("fits", false)
      json.member("detail", detail)
      json.member("violationCount", violationCount)
      json.member("violations", violations)
      json.member("lossCount", lossCount)
      json.member("losses", losses)
    }
  }
}
