// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// What LI.FI's AcrossFacetV4 takes and its ReceiverAcrossV4 is given, field by field, so that the demo's bridge is checked by the same code
/// as LI.FI. See https://github.com/lifinance/contracts.
struct BridgeData {
    bytes32 transactionId;
    string bridge;
    string integrator;
    address referrer;
    /// The zero address is the chain's coin.
    address sendingAssetId;
    address receiver;
    uint256 minAmount;
    uint256 destinationChainId;
    bool hasSourceSwaps;
    bool hasDestinationCall;
}

struct SwapData {
    address callTo;
    address approveTo;
    address sendingAssetId;
    address receivingAssetId;
    uint256 fromAmount;
    bytes callData;
    bool requiresDeposit;
}

struct AcrossV4Data {
    /// Addresses stand in the last 20 bytes.
    bytes32 receiverAddress;
    bytes32 refundAddress;
    bytes32 sendingAssetId;
    bytes32 receivingAssetId;
    uint256 outputAmount;
    uint128 outputAmountMultiplier;
    bytes32 exclusiveRelayer;
    uint32 quoteTimestamp;
    uint32 fillDeadline;
    uint32 exclusivityParameter;
    /// transactionId, SwapData[], who has what the calls leave.
    bytes message;
}

interface AcrossForms {
    function startBridgeTokensViaAcrossV4(BridgeData calldata bridge, AcrossV4Data calldata across) external payable;

    function swapAndStartBridgeTokensViaAcrossV4(
        BridgeData calldata bridge,
        SwapData[] calldata swaps,
        AcrossV4Data calldata across
    ) external payable;
}
