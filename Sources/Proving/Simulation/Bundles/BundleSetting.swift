import FerryConformance
import FerryHTTPServer
import FerryProtocol

/// The state shared by the devices of a world with bundles.
// SAFETY: touched on the scheduler's thread only.
final class BundleSetting: @unchecked Sendable {
  let seed: UInt64
  let library: BundleLibrary
  private var bench = BundleBench()
  private var requests = 0
  private let report: ([Violation], String) -> Void

  /// - Parameter report: Called with the oracles' violations, and the device's name.
  init(seed: UInt64, report: @escaping ([Violation], _ actor: String) -> Void) {
    (self.seed, self.report) = (seed, report)
    library = BundleLibrary(seed: seed)
  }

  func notify(_ event: BundleRunEvent, by actor: String) {
    let found = bench.see(event)
    if !found.isEmpty { report(found, actor) }
  }

  func judge(_ final: FinalBundleEvidence) -> [Violation] { bench.judge(final) }

  // MARK: Reports to the server

  /// Passes a request with reports to the oracles, before the server handles it. Returns a function
  /// for the answer.
  func watch(_ request: HTTPRequest) -> ((HTTPResponse) -> Void)? {
    guard request.segments.last == "bundle-reports",
      let reports = try? BundleReportsRequest(decoding: request.body)
    else { return nil }
    requests += 1
    let (number, device) = (requests, request.remoteAddress)
    notify(.reporting(device: device, reports, number: number), by: device)
    return { [self] response in
      let kept = Array("{\"kept\":\(reports.reports.count)}".utf8)
      var isKept = false
      if response.status == 200, case .bytes(let body) = response.body { isKept = body == kept }
      notify(.reported(number: number, isKept: isKept), by: device)
    }
  }
}
