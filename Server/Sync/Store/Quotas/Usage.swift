/// The use of a space by one principal, or by all of them together. Each change counts in the same
/// transaction. A use is never negative.
package struct Usage: Sendable, Equatable {
  /// Bytes of the states of living records.
  package var bytes: Int64 = 0
  /// Living records.
  package var records: Int64 = 0
  /// Device identifiers.
  package var devices: Int64 = 0
  /// Buffered packets.
  package var packets: Int64 = 0
  /// Bytes of buffered packets.
  package var packetBytes: Int64 = 0
  /// The day to which ``written`` belongs: days since 1970 by the server's clock.
  package var day: Int64 = 0
  /// Bytes written to the history on this day.
  package var written: Int64 = 0

  package init() {}

  /// The name in a store of the use by all principals together.
  static let total = ""
  /// The columns of ``stored``.
  static let columns = names.joined(separator: ", ")
  static let names = [
    "bytes", "records", "devices", "packets", "packet_bytes", "day", "written",
  ]

  /// The numbers as they are stored, one after the other.
  var stored: [Int64] {
    get { [bytes, records, devices, packets, packetBytes, day, written] }
    set {
      precondition(newValue.count == 7, "a use has 7 numbers")
      (bytes, records, devices, packets) = (newValue[0], newValue[1], newValue[2], newValue[3])
      (packetBytes, day, written) = (newValue[4], newValue[5], newValue[6])
    }
  }

  /// Milliseconds of a day.
  package static let dayLength: Int64 = 86_400_000

  /// Returns the same on the day of `now`: bytes written on another day count no more.
  package func today(_ now: Int64) -> Usage {
    var usage = self
    let day = now / Self.dayLength
    if usage.day != day { (usage.day, usage.written) = (day, 0) }
    return usage
  }

  /// Counts living records on growth, creation, shrinking or deletion.
  package mutating func add(bytes: Int64, records: Int64) {
    self.bytes = max(0, self.bytes + bytes)
    self.records = max(0, self.records + records)
  }

  /// Counts packets that enter or leave the buffer.
  package mutating func add(packets: Int64, bytes: Int64) {
    self.packets = max(0, self.packets + packets)
    packetBytes = max(0, packetBytes + bytes)
  }

  /// Counts device identifiers.
  package mutating func add(devices: Int64) { self.devices = max(0, self.devices + devices) }
}
