import FerryProtocol

// The answers for administrators (SPEC.md §32), as in openapi.yaml.
extension JSONWriter {
  mutating func overview(_ space: SpaceOverview, now: Int64) {
    let usage = space.usage.today(now)
    object { json in
      json.member("space", space.space.name.value)
      json.member("epoch", space.space.epoch.description)
      json.member("head", digits: space.space.head)
      json.member("retention", space.space.retention.milliseconds)
      json.member("horizon", digits: space.space.retentionHorizon)
      json.member("schemaVersion", space.schemaVersion)
      json.member("records", usage.records)
      json.member("bytes", usage.bytes)
      json.member("devices", usage.devices)
      json.member("bufferedPackets", usage.packets)
      json.member("bufferedBytes", usage.packetBytes)
      json.member("writtenToday", usage.written)
      json.member("lastHour", space.lastHour)
    }
  }

  mutating func device(_ device: DeviceOverview, head: SequenceNumber) {
    object { json in
      json.member("device", device.device.value)
      json.member("name", device.name?.text)
      json.member("principal", device.principal)
      json.member("client", device.client)
      json.member("seenAt", device.seenAt)
      json.member("operations", device.operations)
      json.member("bufferedPackets", device.bufferedPackets)
      json.member("bufferedBytes", device.bufferedBytes)
      json.member("reached", device.reached.map { String($0) })
      json.member("behind", device.reached.map { String(max(0, head - $0)) })
    }
  }

  mutating func rejection(_ rejection: Rejection, _ names: [DeviceID: DeviceIdentity]) {
    object { json in
      json.member("firstAt", rejection.firstAt)
      json.member("lastAt", rejection.lastAt)
      json.member("times", rejection.times)
      json.member("code", rejection.code)
      json.member("detail", rejection.detail)
      json.member("principal", rejection.principal)
      json.member("device", rejection.device?.value)
      json.member("name", rejection.device.flatMap { names[$0]?.name?.text })
      json.member("table", rejection.key?.table)
      json.member("record", rejection.key?.record)
    }
  }

  mutating func activity(_ count: ActivityCount) {
    object { json in
      json.member("at", count.at)
      json.member("operations", count.operations)
      json.member("conflicts", count.conflicts)
      json.member("rejected", count.rejected)
    }
  }

  mutating func identity(_ identity: DeviceIdentity) {
    object { json in
      json.member("device", identity.device.value)
      json.member("name", identity.name?.text)
      json.member("principal", identity.principal)
    }
  }

  /// - Parameter valueBytes: Larger values are replaced by their number of bytes.
  mutating func listed(_ record: ListedRecord, valueBytes: Int) {
    object { json in
      json.member("record", record.record)
      json.member("sequence", digits: record.sequence)
      json.member("alive", record.state.isAlive)
      json.key("columns")
      json.array(of: record.state.columns) { json, column in
        json.listed(column, valueBytes: valueBytes)
      }
      json.stamp("inserted", record.state.inserted?.stamp)
      json.stamp("deleted", record.state.deleted?.stamp)
    }
  }

  private mutating func listed(_ column: ColumnState, valueBytes: Int) {
    var value = JSONWriter(capacity: 64)
    value.value(column.value)
    object { json in
      json.member("column", column.name)
      if value.count <= valueBytes {
        json.key("value")
        json.raw(value.bytes)
      } else {
        json.member("bytes", value.count)
      }
      json.members(of: column.stamp)
      json.member("sequence", digits: column.origin)
    }
  }

  private mutating func stamp(_ name: StaticString, _ stamp: Stamp?) {
    guard let stamp else { return }
    key(name)
    object { $0.members(of: stamp) }
  }

  private mutating func members(of stamp: Stamp) {
    member("time", stamp.time)
    member("device", stamp.device.value)
  }

  mutating func history(_ entry: HistoryEntry) {
    object { json in
      json.member("operation", entry.id.value)
      json.member("sequence", digits: entry.sequence)
      json.member("kind", entry.kind.rawValue)
      json.member("batch", entry.id.value.version == UniqueID.effectVersion)
      json.member("time", entry.time)
      json.member("device", entry.device.value)
      json.member("base", digits: entry.base)
      json.key("data")
      if let data = entry.data { json.raw(data) } else { json.raw("null") }
      json.key("outcome")
      if let outcome = entry.outcome { json.raw(outcome) } else { json.raw("\"applied\"") }
    }
  }

  /// Writes the answer for an acceptable schema.
  mutating func fit(of schema: SpaceSchema) {
    object { json in
      json.member("fits", true)
      json.member("version", schema.version)
    }
  }

  /// Writes the answer for an unacceptable schema.
  mutating func misfit(_ problem: Problem) {
    object { json in
      json.member("fits", false)
      json.member("detail", problem.detail)
      json.member("violationCount", problem.violationCount)
      json.member("violations", problem.violations)
      json.member("lossCount", problem.lossCount)
      json.member("losses", problem.losses)
    }
  }
}
