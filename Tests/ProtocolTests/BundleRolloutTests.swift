import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Rollouts of bundles", .hangLimit)
struct BundleRolloutTests {
  private static let devices = [
    "0199c306-6400-7000-800a-11ce00000001", "0199c368-0c00-7000-800b-0b0000000002",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
  ]

  /// Computed by another program from the text of the specification.
  private static let golden: [(bundle: String, places: [Int])] = [
    ("bundle.board.1", [6816, 249, 253]), ("bundle.board.2", [9510, 1966, 7086]),
    ("bundle.board.1.0", [2931, 6204, 4533]),
    ("bundle.a-b_c.999999999.0.0.7", [98, 2524, 357]),
  ]

  private func bundle(_ text: String) throws -> BundleID {
    let mission = try #require(MissionID(text))
    return try #require(BundleID(mission: mission))
  }

  @Test("a device has the specified place for each version")
  func places() throws {
    for (name, places) in Self.golden {
      let id = try bundle(name)
      let devices = Self.devices.compactMap { DeviceID($0) }
      let found = devices.map { BundleRollout.place(of: $0, for: id) }
      #expect(found == places, "\(name)")
    }
  }

  @Test("a larger share contains the devices of a smaller one, and all and none are exact")
  func monotone() throws {
    var random = SeededGenerator(seed: 7)
    for version in 1...20 {
      let id = try bundle("bundle.board.\(version)")
      let device = DeviceID(UniqueID(high: random.next(), low: random.next()))
      var wasInside = false
      for hundredths in stride(from: 0, through: 10_000, by: 50) {
        let share = try #require(BundleShare(hundredths: Int64(hundredths)))
        let isInside = BundleRollout.includes(device, in: share, of: id)
        #expect(isInside || !wasInside, "\(device) leaves \(id) at \(share)")
        wasInside = isInside
      }
      #expect(wasInside && !BundleRollout.includes(device, in: .none, of: id))
    }
  }

  @Test("a share has its size, and each version has other devices")
  func sizes() throws {
    var random = SeededGenerator(seed: 11)
    let devices = (0..<20_000).map { _ in
      DeviceID(UniqueID(high: random.next(), low: random.next()))
    }
    let tenth = try #require(BundleShare(percent: "10"))
    let (first, second) = (try bundle("bundle.board.1"), try bundle("bundle.board.2"))
    let inFirst = devices.filter { BundleRollout.includes($0, in: tenth, of: first) }
    #expect(1_800...2_200 ~= inFirst.count)
    let inBoth = inFirst.count { BundleRollout.includes($0, in: tenth, of: second) }
    #expect(120...280 ~= inBoth, "\(inBoth) devices are in both")
  }

  @Test("a percentage has at most two decimals, and is shown as it was written")
  func percentages() {
    for (text, hundredths) in [
      ("0", 0), ("10", 1_000), ("0.25", 25), ("12.5", 1_250), ("99.99", 9_999), ("100", 10_000),
      ("0.01", 1), ("100.00", 10_000),
    ] {
      #expect(BundleShare(percent: text)?.hundredths == hundredths, "\(text)")
    }
    for text in ["", ".", "5.", ".5", "-1", "101", "100.01", "1.234", "1e1", "10%", " 1", "1,5"] {
      #expect(BundleShare(percent: text) == nil, "\(text)")
    }
    #expect(
      [0, 5, 50, 1_250, 10_000].map { BundleShare(hundredths: $0)?.description } == [
        "0%", "0.05%", "0.5%", "12.5%", "100%",
      ])
    #expect(BundleShare(hundredths: -1) == nil && BundleShare(hundredths: 10_001) == nil)
  }
}
