// swift-tools-version: 6.2
// A separate package with replacements for parts of Ferry: everything it needs has to be public.
import PackageDescription

let package = Package(
  name: "outside",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "ferry", path: "../..")],
  targets: [
    .executableTarget(
      name: "Outside", dependencies: [.product(name: "Ferry", package: "ferry")],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)])
  ]
)
