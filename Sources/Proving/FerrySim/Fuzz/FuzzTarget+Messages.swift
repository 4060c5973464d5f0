import FerryProtocol

extension FuzzTarget {
  /// The messages of the protocol (SPEC.md §3 to §34).
  static let messages: [FuzzTarget] =
    [
      packet, answer, page, records, digestQuery, digestAnswer, deviceName, devices, space, problem,
      state, schema, manifest, bundleReports, bundleChange, bundles, patch,
    ] + memberships

  private static let packet = codec("packet", ["packets"]) { bytes throws(MalformedMessage) in
    try Packet(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let answer = codec("answer", ["answers"]) { bytes throws(MalformedMessage) in
    try PacketAnswer(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let records = codec("records", ["requests/records.json"]) {
    bytes throws(MalformedMessage) in
    try RecordsRequest(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let digestQuery = codec(
    "digest-query", ["digests/query-tables.json", "digests/query-nodes.json"]
  ) { bytes throws(MalformedMessage) in
    try DigestQuery(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let digestAnswer = codec(
    "digest-answer", ["digests/tables.json", "digests/nodes.json", "digests/behind.json"]
  ) { bytes throws(MalformedMessage) in
    try DigestAnswer(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let deviceName = codec("device-name", ["requests/device-name.json"]) {
    bytes throws(MalformedMessage) in
    try DeviceNameRequest(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let devices = codec("devices", ["requests/devices.json"]) {
    bytes throws(MalformedMessage) in
    try DevicesRequest(decoding: bytes, limits: .standard)
  } encode: {
    $0.encoded()
  }

  private static let space = codec("space", ["space.json"]) { bytes throws(MalformedMessage) in
    try SpaceInfo(decoding: bytes)
  } encode: {
    $0.encoded()
  }

  private static let manifest = codec("manifest", ["bundles/manifest.json"]) {
    bytes throws(MalformedMessage) in
    try MissionManifest(decoding: bytes)
  } encode: {
    $0.encoded()
  }

  private static let bundleReports = codec("bundle-reports", ["bundles/reports.json"]) {
    bytes throws(MalformedMessage) in
    try BundleReportsRequest(decoding: bytes)
  } encode: {
    $0.encoded()
  }

  private static let bundleChange = codec("bundle-change", ["bundles/change.json"]) {
    bytes throws(MalformedMessage) in
    try BundleChangeRequest(decoding: bytes)
  } encode: {
    $0.encoded()
  }

  private static let bundles = codec("bundles", ["bundles/list.json"]) {
    bytes throws(MalformedMessage) in
    try BundlePage(decoding: bytes)
  } encode: {
    $0.encoded()
  }

  private static let patch = codec(
    "patch", [],
    [
      #"{"format":1,"app":"tasks","behaviour":"sort","sequence":3,"appVersions":["1.2"],"#
        + #""services":["log"],"expires":1800000000000,"script":"return 1"}"#
    ]
  ) { bytes throws(MalformedMessage) in
    try PatchDocument(decoding: bytes)
  } encode: {
    $0.encoded()
  }

  private static let schema = codec(
    "schema", [],
    [
      #"{"version":3,"minimumProtocol":1,"requireCursor":true,"tables":{"tasks":{"policy":"#
        + #""last-writer-wins","deletes":"edit-wins","write":"writer","columns":{"votes":"#
        + #""counter","body":"text-merge","due":{"policy":"max","type":"integer","required":true}},"#
        + #""unique":[["email"],["project","number"]],"aliases":["todo"],"clashes":[{"columns":"#
        + #"["list"],"rule":"ask"}]}}}"#,
      #"{"tables":{"tasks":{"definition":{"key":"id","columns":[{"name":"title","type":"text","#
        + #""required":true,"default":"x"},{"name":"list","type":"text"}],"unique":[["title"]],"#
        + #""references":[{"columns":["list"],"table":"lists","onDelete":"cascade"}],"indexes":"#
        + #"[["list"]]}},"lists":{"definition":{"key":{"mapped":"n"},"columns":[]}},"links":{"#
        + #""definition":{"key":{"value":[{"name":"a","type":"text"},{"name":"b","type":"#
        + #""integer"}]},"columns":[]}}}}"#,
    ]
  ) { bytes throws(MalformedMessage) in
    try SpaceSchema(decoding: bytes)
  } encode: {
    $0.encoded()
  }

  private static let problem = FuzzTarget(name: "problem", fixtures: ["problems"]) { bytes in
    guard let problem = Problem(decoding: bytes) else { return "refused" }
    let written = problem.encoded()
    guard let same = Problem(decoding: written), same == problem, same.encoded() == written else {
      throw FuzzFinding("the written problem is not read back")
    }
    return "read \(problem.code.rawValue)"
  }
}
