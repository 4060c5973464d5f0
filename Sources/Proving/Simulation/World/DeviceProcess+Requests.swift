import FerryConformance

extension DeviceProcess {
  /// The requests of one sync at most, whatever a server answers.
  private static let requestsMax = 5_000

  /// Reports a sync with too many requests.
  ///
  /// - Parameter before: the device's requests when the sync began.
  func judgeRequests(since before: Int) {
    let count = setting.network.requestCount(of: device.name) - before
    guard isAlive, count > Self.requestsMax else { return }
    let what = "a sync of \(device.name) made \(count) requests"
    setting.report(device, [Violation(oracle: "bounded-requests", what)])
  }
}
