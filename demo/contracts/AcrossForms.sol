// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// The input of LI.FI's AcrossFacetV4 and ReceiverAcrossV4, field by field, so that the same code checks the demo's bridge and LI.FI. See
/// https://github.com/lifinance/contracts.
interface AcrossForms {
    struct BridgeData {
        bytes32 transactionId;
        string bridge;
        string integrator;
        address referrer;
        /// The zero address is the native coin.
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
        /// Addresses are in the last 20 bytes.
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
        /// transactionId, SwapData[], and the receiver of what the calls leave over.
        bytes message;
    }
}
