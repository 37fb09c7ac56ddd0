// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./AcrossForms.sol";
import "./DemoPair.sol";

/// A test double of LI.FI's diamond: accepts the input of AcrossFacetV4, pays the fees, and keeps the rest. It bridges nothing.
contract LifiDouble is AcrossForms {
    function facetAddress(bytes4 selector) external view returns (address) {
        bool isServed = selector == this.startBridgeTokensViaAcrossV4.selector
            || selector == this.swapAndStartBridgeTokensViaAcrossV4.selector;
        return isServed ? address(this) : address(0);
    }

    function startBridgeTokensViaAcrossV4(BridgeData calldata b, AcrossV4Data calldata) external payable {
        _pull(b.sendingAssetId, b.minAmount);
    }

    function swapAndStartBridgeTokensViaAcrossV4(
        BridgeData calldata b,
        SwapData[] calldata swaps,
        AcrossV4Data calldata
    ) external payable {
        uint256 before = _held(b.sendingAssetId) - (b.sendingAssetId == address(0) ? msg.value : 0);
        for (uint256 i = 0; i < swaps.length; i++) {
            SwapData calldata s = swaps[i];
            if (s.requiresDeposit) _pull(s.sendingAssetId, s.fromAmount);
            uint256 value = s.sendingAssetId == address(0) ? s.fromAmount : 0;
            if (value == 0) AnyToken.approve(s.sendingAssetId, s.approveTo, s.fromAmount);
            (bool ok,) = s.callTo.call{value: value}(s.callData);
            require(ok, "a fee was not paid");
        }
        require(_held(b.sendingAssetId) - before >= b.minAmount, "too little is left");
    }

    receive() external payable {}

    function _pull(address token, uint256 amount) private {
        if (token == address(0)) {
            require(msg.value == amount, "other coins than quoted");
        } else {
            AnyToken.pull(token, msg.sender, address(this), amount);
        }
    }

    function _held(address token) private view returns (uint256) {
        return token == address(0) ? address(this).balance : IBalance(token).balanceOf(address(this));
    }
}
