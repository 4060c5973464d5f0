import FerrySimulation
import FerryTestSupport
import Testing

/// The losing values, as real worlds report them.
@Suite(.hangLimit)
struct LostValueTests {
  @Test("conflicts of a world name the values, their places and the devices that wrote them")
  func named() async throws {
    var (conflicts, values, ofTwo, unknown) = (0, 0, 0, 0)
    for seed in 1...3 as ClosedRange<UInt64> {
      let options = WorldOptions.small(
        seed == 1 ? .hostile : .mobile, devices: 8, operations: 240, seconds: 40)
      let result = try await WorldThreads.world(seed, options, keepsEvents: true)
      let devices = Set(result.actors)
      for event in result.events where event.kind == .conflict {
        conflicts += 1
        values += event.lost.count
        for value in event.lost {
          #expect(value.place.contains("/"))
          #expect(devices.contains(value.lost.author), "\(value)")
          // A row with a unique value may be unsent, and of an identifier since replaced by the
          // device.
          let isUnsent = value.isQuestion && value.won.value.isEmpty
          #expect(devices.contains(value.won.author) || isUnsent, "\(value)")
          // A device whose file was restored loses to earlier writes of the same device, too.
          if value.lost.author != value.won.author { ofTwo += 1 }
          // A row never sent, since a parent of it was deleted, is not in the history.
          if value.lost.value.isEmpty || value.won.value.isEmpty { unknown += 1 }
          #expect(event.line.contains("\(value)"))
        }
      }
      #expect(result.events.allSatisfy { $0.lost.isEmpty || $0.kind == .conflict })
    }
    #expect(conflicts > 5)
    #expect(values >= conflicts, "\(values) values of \(conflicts) conflicts")
    #expect(unknown < values / 3, "\(unknown) of \(values) values are unknown")
    #expect(ofTwo > values / 2, "\(ofTwo) of \(values) values lost to another device's")
  }
}
